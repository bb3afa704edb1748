-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- Usage: lua5.1 test_sutro.lua FOLDER. The texts of --extra that job_submit takes and refuses, and
-- its changes of jobs. FOLDER has sutro.lua and job_submit.lua.

local folder = arg[1]
local sutro = dofile(folder .. "/sutro.lua")
local checks = 0

local function equal(found, wanted, what)
	checks = checks + 1
	if found ~= wanted then
		error(string.format("%s: %s instead of %s", what, tostring(found), tostring(wanted)), 2)
	end
end

-- A text, and the GRES.
local GOOD = {
	{ nil, "" }, { "", "" }, { "color=red", "" }, { '{"sutro": 1}', "" },
	{ "sutro:read=/scratch:60M", "gres/sutro_read:scratch:60" },
	{ "sutro:write=/scratch:1G", "gres/sutro_write:scratch:1000" },
	{ "sutro:read=/dev/vg/my-data:1T", "gres/sutro_read:dev__vg__my-data:1000000" },
	{ "sutro:read=/a_b:1M", "gres/sutro_read:a_b:1" },
	-- Never less than is promised.
	{ "sutro:read=/a:1000001", "gres/sutro_read:a:2" },
	{ "sutro:read=/a:1999K", "gres/sutro_read:a:2" },
	{ "sutro:read=/a:1000T", "gres/sutro_read:a:1000000000" },
	{ "sutro:read=/a:60M,write=/a:20M,read=/b:5M",
	  "gres/sutro_read:a:60,gres/sutro_write:a:20,gres/sutro_read:b:5" },
}
for _, case in ipairs(GOOD) do
	local found, mistake = sutro.parse(case[1])
	equal(mistake, nil, tostring(case[1]))
	equal(sutro.gres(found), case[2], tostring(case[1]))
end

local BAD = {
	"sutro", "sutro:", "sutro=read", "Sutro:read=/a:60M", "SUTRO:read=/a:60M", " sutro:read=/a:60M",
	"sutro:,", "sutro:read=/a:60M,", "sutro:,read=/a:60M", "sutro:read=/a:60M,,write=/a:5M",
	"sutro:read", "sutro:read=", "sutro:read=/a", "sutro:read=/a:", "sutro:read=:60M", "sutro:=/a:60M",
	"sutro:riops=/a:60M", "sutro:READ=/a:60M", "sutro:read=a:60M", "sutro:read=any:60M",
	"sutro:read=/:60M", "sutro:read=//a:60M", "sutro:read=/a/:60M", "sutro:read=/a//b:60M",
	"sutro:read=/a/../b:60M", "sutro:read=/a.b:60M", "sutro:read=/a b:60M", "sutro:read=/a*:60M",
	"sutro:read=/a__b:60M", "sutro:read=/_a:60M", "sutro:read=/a_/b:60M", "sutro:read=/\195\164:60M",
	"sutro:read=/a:60", "sutro:read=/a:999K", "sutro:read=/a:0M", "sutro:read=/a:-60M",
	"sutro:read=/a:1.5G", "sutro:read=/a:1e9", "sutro:read=/a:60MB", "sutro:read=/a:60m",
	"sutro:read=/a:60P", "sutro:read=/a:infinity", "sutro:read=/a:30%", "sutro:read=/a:1001T",
	"sutro:read=/a:9999999999999999", "sutro:read=/a:60M read=/b:60M", "sutro:read=/a:60M;reboot",
	"sutro:read=/a:60M\nwrite=/a:60M", "sutro:read=/a:60M,read=/a:60M", "sutro:read=/a:6M,read=/a:60M",
	"sutro:read=/" .. string.rep("a", 1000) .. ":60M",
}
for _, text in ipairs(BAD) do
	local found, mistake = sutro.parse(text)
	equal(found, nil, text)
	equal(mistake:match("^sutro: ") ~= nil, true, text)
	equal(mistake:find("second time", 1, true) ~= nil
		or mistake:find("--extra=sutro:KIND=PATH:RATE", 1, true) ~= nil, true, text)
end

-- Two paths have one type only if they are the same: all paths of up to five of these letters.
local types, n = {}, 0
local function walk(path, depth)
	local found = sutro.parse("sutro:read=" .. path .. ":1M")
	if found then
		local name = found[1].name
		equal(types[name] == nil, true, path .. " and " .. tostring(types[name]))
		types[name], n = path, n + 1
	end
	for _, letter in ipairs(depth > 0 and { "a", "_", "/", "-" } or {}) do
		walk(path .. letter, depth - 1)
	end
end
walk("/", 5)
equal(n > 100, true, "paths")

-- Jobs.
local job = { extra = "sutro:read=/a:60M", tres_per_node = "gres/gpu:1" }
equal(sutro.submit(job), nil, "submit")
equal(job.tres_per_node, "gres/gpu:1,gres/sutro_read:a:60", "other resources stay")
job = { extra = "sutro:read=/a:60M" }
equal(sutro.submit(job), nil, "submit")
equal(job.tres_per_node, "gres/sutro_read:a:60", "alone")
job = { extra = "color=red" }
equal(sutro.submit(job), nil, "another text")
equal(job.tres_per_node, nil, "another text")
for _, field in ipairs({ "gres", "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task" }) do
	for _, text in ipairs({ "gres/sutro_read:a:900", "gpu:1,SUTRO_write:a:1" }) do
		equal(type(sutro.submit({ [field] = text })), "string", field)
		equal(type(sutro.submit({ [field] = text, extra = "sutro:read=/a:60M" })), "string", field)
		equal(type(sutro.modify({ [field] = text }, {})), "string", field)
	end
end

local ours = { extra = "sutro:read=/a:60M", tres_per_node = "gres/sutro_read:a:60" }
equal(sutro.modify({ time_limit = 5 }, ours), nil, "another field")
equal(sutro.modify({ extra = "sutro:read=/a:60M" }, ours), nil, "the same text")
equal(sutro.modify({ extra = "color=red" }, {}), nil, "no floor")
equal(sutro.modify({ tres_per_node = "gres/gpu:2" }, { tres_per_node = "gres/gpu:1" }), nil, "gpu")
for _, change in ipairs({
	{ extra = "sutro:read=/a:900M" }, { extra = "" }, { extra = "color=red" }, { tres_per_node = "" },
	{ tres_per_node = "gres/gpu:1" },
}) do
	equal(type(sutro.modify(change, ours)), "string", "a change of a floor")
end
equal(type(sutro.modify({ extra = "sutro:read=/a:900M" }, {})), "string", "a floor later")
equal(type(sutro.modify({ extra = "sutro:nonsense" }, {})), "string", "a mistake later")

-- The script of a site, as Slurm calls it.
local logged
slurm = { SUCCESS = 0, ERROR = -1, log_user = function(...) logged = string.format(...) end }
local text = assert(io.open(folder .. "/job_submit.lua")):read("*a")
text = text:gsub("/usr/share/sutro%-slurm", (folder:gsub("%%", "%%%%")))
assert((loadstring or load)(text))()
job = { extra = "sutro:read=/a:60M" }
equal(slurm_job_submit(job, {}, 1000), 0, "submit")
equal(job.tres_per_node, "gres/sutro_read:a:60", "submit")
equal(slurm_job_submit({ extra = "sutro:100%d" }, {}, 1000), -1, "a mistake")
equal(logged:find("'100%d' is malformed", 1, true) ~= nil, true, "what the user reads")
equal(slurm_job_modify({ extra = "sutro:read=/a:900M" }, ours, {}, 1000), -1, "modify")
equal(slurm_job_modify({}, ours, {}, 1000), 0, "modify")

print(checks .. " checks")
