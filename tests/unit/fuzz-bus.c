/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Usage: fuzz-bus [libFuzzer's arguments, FILES]
 *
 * A libFuzzer target: calls of bus clients to the whole daemon, which runs in a thread
 * on a fake machine. An input is text, each line a call:
 *
 *	SetPolicy|a.service|ReadBandwidthMin|/dev/vg/db 1M|runtime
 *	~GetPolicy|a.service			no reply is expected
 *	@ResetPolicy|a.service|client		another client calls
 *	!3ResetPolicy|a.service			arguments of the fourth signature
 *	-					the other client leaves the bus
 *	#					nothing
 *
 * A field is any bytes; what is no UTF-8 becomes some, for a bus lets nothing else
 * through. "\n", "\p", "\\" stand for a newline, "|", a backslash, "\L" for 5000
 * bytes, "\#" before a field for 300 fields. All calls are sent before the first
 * reply is waited for.
 *
 * Whatever they are: each has one reply in time, an error is fit to be shown, and
 * arguments of other types are refused. Nothing appears on the machine but control
 * files of valid units, which --check accepts, and what the daemon keeps in
 * /run/sutro; after ResetPolicy and the clients' end nothing is left of them.
 */

#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>

#include "bus.h"
#include "check.h"
#include "daemon-thread.h"

#define CALLS_MAX 32
#define LONG_BYTES 5000
#define MANY_FIELDS 300

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const senders[] = { ":1.9", ":1.10" };

static struct roots roots;
static struct daemon_thread daemon_thread;

/* ---- the machine ---- */

static const struct {
	const char *name;
	const char *cgroup;
} units[] = {
	{ "a.service", "/system.slice/a.service" },
	{ "b.service", "/system.slice/b.service" },
	{ "system.slice", "/system.slice" },
	{ "user.slice", "/user.slice" },
	{ "user-1000.slice", "/user.slice/user-1000.slice" },
};

static const char *cgroup_of(const char *unit)
{
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (streq(unit, units[i].name))
			return units[i].cgroup;
	return "";
}

static void make_cgroup(const char *path)
{
	static const char *const files[][2] = {
		{ "io.sutro.class", "default be\n" },
		{ "io.sutro.stat", "8:0 time_ns=1 rbytes=4096 rios=1\n" },
		{ "io.stat", "254:0 rbytes=4096 wbytes=0 rios=1 wios=0\n" },
		{ "io.max", "" },
	};

	fake_cgroup(&roots, path);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		char file[256];

		snprintf(file, sizeof(file), "/sys/fs/cgroup%s/%s", path,
			 files[i][0]);
		fake_file(&roots, file, "%s", files[i][1]);
	}
}

/* Who has cgroups delegated may name them so. */
static const char *const odd = "/user.slice/user-1000.slice/\xff\x1b[2J";

/* It is in ListUsage if the daemon looks in time. */
static void use_disk(void)
{
	static unsigned int rounds;
	char file[256];

	snprintf(file, sizeof(file), "/sys/fs/cgroup%s/io.stat", odd);
	fake_file(&roots, file, "254:0 rbytes=%u wbytes=0 rios=1 wios=0\n",
		  ++rounds * 4096);
}

static void make_machine(void)
{
	fake_new(&roots);
	fake_disk(&roots, "sda", "8:0", "sutro");
	fake_disk(&roots, "sdb", "8:16", "sutro");
	fake_disk(&roots, "sdc", "8:32", "bfq");
	fake_partition(&roots, "sdc", "sdc1", "8:33");
	fake_dm(&roots, "dm-0", "254:0", "sda sdb", "vg-db", "LVM-x");
	fake_mount(&roots, "/srv", "254:0", "ext4", "/dev/mapper/vg-db");
	fake_dir(&roots, "/srv");
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		make_cgroup(units[i].cgroup);
	make_cgroup(odd);
}

/* ---- nothing else is written ---- */

static uint64_t tree_hash;

static void hash(const void *data, size_t n)
{
	for (const unsigned char *c = data; n--; c++)
		tree_hash = (tree_hash ^ *c) * 0x100000001b3ULL;
}

/* What the daemon may write: its own folders, and what the kernel's files say. */
static bool is_daemons(const char *path)
{
	static const char *const places[] = { "/run/sutro/",
					      "/etc/sutro/policy.control",
					      "/writes" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (startswith(path, places[i]))
			return true;
	return false;
}

static int hash_one(const char *path, const struct stat *st, int type,
		    struct FTW *ftw)
{
	const char *relative = path + strlen(roots.prefix);

	if (is_daemons(relative) || streq(relative, "/etc/sutro") ||
	    streq(relative, "/etc"))
		return 0;
	hash(relative, strlen(relative) + 1);
	hash(&st->st_mode, sizeof(st->st_mode));
	if (S_ISREG(st->st_mode) && !strstr(relative, "/fs/cgroup/") &&
	    !endswith(relative, "/queue/scheduler"))
		hash(&st->st_size, sizeof(st->st_size));
	return 0;
}

static uint64_t machine_hash(void)
{
	tree_hash = 0xcbf29ce484222325ULL;
	check(nftw(roots.prefix, hash_one, 16, FTW_PHYS) == 0);
	return tree_hash;
}

/* ---- fields ---- */

/**
 * struct fields - what is left of a line
 * @again: how often the next field is to be given once more
 */
struct fields {
	char *next;
	unsigned int again;
};

static char *take_field(struct fields *f)
{
	char *field = f->next, *end;

	if (!field)
		return NULL;
	if (!f->again && startswith(field, "\\#"))
		f->again = MANY_FIELDS;
	if (f->again && --f->again)
		return field;
	end = strchr(field, '|');
	if (end)
		*end++ = '\0';
	f->next = end;
	return field;
}

/* Bytes of no character become two-byte ones, "\xff" for example U+00FF. */
static void add_bytes(struct text *t, const char *s, size_t n)
{
	_cleanup_free_ char *part = strndup(s, n);

	check(part);
	for (char *c = part; *c; c++)
		if ((unsigned char)*c < 0x80)
			check(text_add(t, "%c", *c) == 0);
		else
			check(text_add(t, "%c%c", 0xc0 | (*c >> 6 & 3),
				       0x80 | (*c & 0x3f)) == 0);
}

static char *take_string(struct fields *f)
{
	_cleanup_(text_freep) struct text t = {};
	const char *s = take_field(f) ?: "";
	size_t length = strcspn(s, "|");

	check(text_add(&t, "%s", "") == 0);
	for (size_t i = 0; i < length; i++) {
		if (s[i] != '\\') {
			add_bytes(&t, s + i, 1);
			continue;
		}
		switch (s[++i]) {
		case 'L':
			check(text_add(&t, "%0*d", LONG_BYTES, 0) == 0);
			break;
		case 'n':
			check(text_add(&t, "\n") == 0);
			break;
		case 'p':
			check(text_add(&t, "|") == 0);
			break;
		case '\\':
			check(text_add(&t, "\\") == 0);
			break;
		case '\0':
			i--;
			break;
		}
	}
	return TAKE_PTR(t.p);
}

/* ---- arguments ---- */

static size_t type_length(const char *signature)
{
	size_t depth = 0, i = 0;

	do {
		depth += signature[i] == '(';
		depth -= signature[i] == ')';
	} while (signature[i++] == 'a' || depth);
	return i;
}

static size_t count_fields(const struct fields *f)
{
	size_t n = f->next ? 1 + f->again : 0;

	for (const char *c = f->next; c && *c; c++)
		n += *c == '|';
	if (f->next && !f->again && startswith(f->next, "\\#"))
		n += MANY_FIELDS;
	return n;
}

static void append(sd_bus_message *m, const char *signature, struct fields *f);

/* An array gets what those after it leave. */
static void append_array(sd_bus_message *m, const char *element, size_t length,
			 size_t after, struct fields *f)
{
	_cleanup_free_ char *type = strndup(element, length);

	check(type);
	check(sd_bus_message_open_container(m, 'a', type) >= 0);
	while (count_fields(f) > after)
		append(m, type, f);
	check(sd_bus_message_close_container(m) >= 0);
}

static void append(sd_bus_message *m, const char *signature, struct fields *f)
{
	for (size_t n; *signature; signature += n) {
		_cleanup_free_ char *s = NULL, *inner = NULL;

		n = type_length(signature);
		switch (*signature) {
		case 'a':
			append_array(m, signature + 1, n - 1,
				     strlen(signature + n), f);
			break;
		case '(':
			inner = strndup(signature + 1, n - 2);
			check(inner);
			check(sd_bus_message_open_container(m, 'r', inner) >=
			      0);
			append(m, inner, f);
			check(sd_bus_message_close_container(m) >= 0);
			break;
		case 'v':
			s = take_string(f);
			check(sd_bus_message_append(m, "v", "s", s) >= 0);
			break;
		case 's':
			s = take_string(f);
			check(sd_bus_message_append(m, "s", s) >= 0);
			break;
		default:
			s = take_string(f);
			check(sd_bus_message_append(m, "t",
						    strtoull(s, NULL, 0)) >= 0);
		}
	}
}

/* ---- calls ---- */

static const struct member {
	const char *name;
	const char *signature;
} members[] = {
	{ "ListDevices", "" },	  { "ResolvePath", "s" },
	{ "ListUnits", "" },	  { "Explain", "ss" },
	{ "UseDevices", "as" },	  { "ReleaseDevices", "as" },
	{ "ListPromises", "" },	  { "ListUsage", "" },
	{ "History", "sss" },	  { "SetPolicy", "sa(ss)s" },
	{ "ResetPolicy", "ss" },  { "GetPolicy", "s" },
	{ "ReloadPolicies", "" }, { "Reload", "" },
	{ "Dump", "" },
};

/* Of the interface of properties, where sd-bus answers. */
static const struct member property_members[] = {
	{ "Get", "ss" },
	{ "GetAll", "s" },
	{ "Set", "ssv" },
};

static const char *const other_signatures[] = {
	"",  "s",  "t",	     "ss",   "as",	"sss",	 "a(ss)",
	"v", "at", "sa(ss)", "sass", "a(ss)ss", "s(ss)", "sa(st)s",
};

/**
 * struct call - a call under way
 * @mistyped: its arguments are not those of the member
 * @not_ours: sd-bus answers it
 */
struct call {
	bool mistyped;
	bool not_ours;
	bool done;
	bool failed;
	size_t rows;
};

static unsigned int waiting;

/* What no error of ours says is that of sd-bus, and none is a bare errno, such as
 * InvalidArgs for a reply that could not be made.
 */
static void check_name(const sd_bus_error *e, bool not_ours)
{
	static const char *const names[] = {
		SD_BUS_ERROR_FAILED,
		SD_BUS_ERROR_LIMITS_EXCEEDED,
		SD_BUS_ERROR_PROPERTY_READ_ONLY,
		SD_BUS_ERROR_UNKNOWN_INTERFACE,
		SD_BUS_ERROR_UNKNOWN_METHOD,
		SD_BUS_ERROR_UNKNOWN_PROPERTY,
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(e->name, names[i]))
			return;
	check(startswith(e->name, "org.sutro1.Error.") ||
	      (not_ours && streq(e->name, SD_BUS_ERROR_INVALID_ARGS)));
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
	const sd_bus_error *e = sd_bus_message_get_error(m);
	struct call *c = userdata;

	peer_check_message(m);
	check(!c->done);
	c->done = true;
	waiting--;
	c->failed = e;
	check(e || !c->mistyped);
	if (e) {
		check(c->not_ours || text_is_plain(e->message));
		check_name(e, c->mistyped || c->not_ours);
		return 1;
	}
	if (sd_bus_message_has_signature(m, "aa{sv}")) {
		check(sd_bus_message_enter_container(m, 'a', "a{sv}") > 0);
		while (sd_bus_message_at_end(m, false) == 0) {
			check(sd_bus_message_skip(m, "a{sv}") > 0);
			c->rows++;
		}
	}
	return 1;
}

static void wait_all(void)
{
	while (waiting)
		peer_step(&daemon_thread.peer, PEER_PATIENCE_USEC);
}

static void send_call(sd_bus_message *m, struct call *c)
{
	check(sd_bus_call_async(daemon_thread.peer.bus, NULL, m, on_reply, c,
				PEER_PATIENCE_USEC) >= 0);
	waiting++;
}

static const struct member *find_member(const struct member *l, size_t n,
					const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (streq(l[i].name, name))
			return &l[i];
	return NULL;
}

/* One line. */
static void make_call(char *line, struct call *c)
{
	const char *sender = senders[0], *signature = NULL;
	const char *interface = BUS_INTERFACE;
	struct fields fields;
	const struct member *known;
	bool no_reply = false;
	sd_bus_message *m;
	char *name;

	for (; *line && strchr("~@!", *line); line++) {
		no_reply |= *line == '~';
		if (*line == '@')
			sender = senders[1];
		if (*line == '!' && line[1])
			signature =
				other_signatures[(unsigned char)*++line %
						 ARRAY_SIZE(other_signatures)];
	}
	if (*line == '#')
		return;
	if (*line == '-') {
		peer_client_gone(&daemon_thread.peer, senders[1]);
		return;
	}
	fields = (struct fields){ .next = line };
	name = take_field(&fields);
	known = find_member(members, ARRAY_SIZE(members), name);
	if (!known) {
		known = find_member(property_members,
				    ARRAY_SIZE(property_members), name);
		c->not_ours = true;
		if (known)
			interface = "org.freedesktop.DBus.Properties";
	}
	m = peer_call(&daemon_thread.peer, sender, interface, name);
	if (!m)
		return;
	if (!signature)
		signature = known ? known->signature : "";
	append(m, signature, &fields);
	c->mistyped = !known || !streq(signature, known->signature);
	if (no_reply) {
		check(sd_bus_message_set_expect_reply(m, false) >= 0);
		check(sd_bus_send(daemon_thread.peer.bus, m, NULL) >= 0);
	} else {
		send_call(m, c);
	}
	sd_bus_message_unref(m);
}

static void call_now(struct call *c, const char *member, const char *a,
		     const char *b)
{
	sd_bus_message *m = peer_call(&daemon_thread.peer, senders[0],
				      BUS_INTERFACE, member);

	*c = (struct call){};
	check(m);
	if (a)
		check(sd_bus_message_append(m, "s", a) >= 0);
	if (b)
		check(sd_bus_message_append(m, "s", b) >= 0);
	send_call(m, c);
	sd_bus_message_unref(m);
	wait_all();
}

/* ---- what is left ---- */

/* @lifetime: NULL: there must be no file. */
static void check_control(const char *dir, const char *lifetime)
{
	struct dirent **l;
	int n = scandir(dir, &l, NULL, NULL);

	check(n >= 0 || errno == ENOENT);
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *path = NULL;
		char *name = l[i]->d_name;
		struct call c;
		struct stat st;

		path = asprintf_or_null("%s/%s", dir, name);
		check(path);
		if (!streq(name, ".") && !streq(name, "..")) {
			check(lifetime && endswith(name, ".policy"));
			check(lstat(path, &st) == 0 && S_ISREG(st.st_mode));
			check((st.st_mode & 07777) == 0644);
			check(check_files((char *[]){ path, NULL }) == 0);
			name[strlen(name) - strlen(".policy")] = '\0';
			check(unit_name_is_valid(name));
			call_now(&c, "ResetPolicy", name, lifetime);
			check(!c.failed);
			call_now(&c, "GetPolicy", name, NULL);
			check(!c.failed);
		}
		free(l[i]);
	}
	if (n >= 0)
		free(l);
}

static void check_empty(void)
{
	struct call c;

	check_control(roots.control, "persistent");
	check_control(roots.control_run, "runtime");
	check_control(roots.control, NULL);
	check_control(roots.control_run, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(senders); i++)
		peer_client_gone(&daemon_thread.peer, senders[i]);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		call_now(&c, "GetPolicy", units[i].name, NULL);
		check(!c.failed && !c.rows);
	}
	/* Units are asked about once more before their promises go. */
	do
		call_now(&c, "ListPromises", NULL, NULL);
	while (c.rows);
	check(!c.failed);
}

/* ---- the target ---- */

static void stop(void)
{
	daemon_stop(&daemon_thread);
	fake_remove(&roots);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	make_machine();
	daemon_start(&daemon_thread, &roots, cgroup_of);
	check(atexit(stop) == 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *save = NULL;
	struct call calls[CALLS_MAX] = {};
	static uint64_t before;
	size_t n = 0;

	check(text);
	if (!before)
		before = machine_hash();
	use_disk();
	for (char *line = strtok_r(text, "\n", &save); line && n < CALLS_MAX;
	     line = strtok_r(NULL, "\n", &save))
		make_call(line, &calls[n++]);
	wait_all();
	free(text);
	check(machine_hash() == before);
	check_empty();
	return 0;
}
