-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- Bandwidth floors of Slurm jobs as consumable resources, for job_submit.lua on the controller.
--
--   sbatch --extra='sutro:read=/scratch:60M,write=/scratch:20M' ...
--
-- becomes a request of the generic resources (GRES)
--
--   gres/sutro_read:scratch:60,gres/sutro_write:scratch:20
--
-- in units of 1 MB/s, rounded up. Slurm counts them against those of the node, which
-- "sutroctl slurm-gres" prints; the prolog on the node makes a floor of the same text. A type of a
-- GRES has no slashes: "/dev/vg/data" is "dev__vg__data", and paths for which that would be
-- ambiguous are refused.
--
-- Only this file makes requests of these resources: a job that requests them in another way is
-- refused, and so is a later change. So no job has a floor that Slurm does not count.
--
-- It is Lua 5.1, which Debian's Slurm uses, and runs on later versions.

local sutro = {}

sutro.FORM = "--extra=sutro:KIND=PATH:RATE[,KIND=PATH:RATE...] with KIND read or write, PATH a path "
	.. "of a volume on the node such as /scratch (letters, digits, - and single _ within a name), and "
	.. "RATE a whole number, 1M to 1000T bytes per second (K, M, G, T: powers of 1000), for example "
	.. "--extra=sutro:read=/scratch:60M"

local KINDS = { read = "sutro_read", write = "sutro_write" }
local FACTORS = { [""] = 1, K = 1e3, M = 1e6, G = 1e9, T = 1e12 }
local LEAST, MOST = 1e6, 1e15
local UNIT = 1e6
local LONGEST = 1000
-- Fields of a job that can request a GRES.
local FIELDS = { "gres", "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task" }

-- Is this text for Sutro, rightly or wrongly written?
local function is_ours(extra)
	return type(extra) == "string" and extra:match("^%s*[Ss][Uu][Tt][Rr][Oo]") ~= nil
end

-- The type of a GRES for a path; nil for a path that has none.
local function type_of(path)
	local names = {}
	if not path:match("^/[%w_/-]+$") or path:match("//") or path:match("/$") then
		return nil
	end
	for name in path:gmatch("[^/]+") do
		if name:match("^_") or name:match("_$") or name:match("__") then
			return nil
		end
		names[#names + 1] = name
	end
	return table.concat(names, "__")
end

local function parse_one(word)
	local kind, path, number, suffix = word:match("^(%a+)=([^:]+):(%d+)([KMGT]?)$")
	local rate, name
	if not kind or not KINDS[kind] or #number > 15 then
		return nil
	end
	rate, name = tonumber(number) * FACTORS[suffix], type_of(path)
	if not name or rate < LEAST or rate > MOST then
		return nil
	end
	return { name = KINDS[kind] .. ":" .. name, count = math.ceil(rate / UNIT) }
end

-- The resources that a text requests, in its order; without a text for Sutro none.
-- After a mistake nil and a sentence.
function sutro.parse(extra)
	local found, seen = {}, {}
	if not is_ours(extra) then
		return found
	end
	local body = extra:match("^sutro:(.+)$")
	if not body or #extra > LONGEST then
		return nil, "sutro: the text is malformed; allowed is " .. sutro.FORM
	end
	for word in (body .. ","):gmatch("([^,]*),") do
		local one = parse_one(word)
		if not one then
			return nil, "sutro: '" .. word .. "' is malformed; allowed is " .. sutro.FORM
		end
		if seen[one.name] then
			return nil, "sutro: '" .. word .. "' names a kind and a path for the second time"
		end
		seen[one.name] = true
		found[#found + 1] = one
	end
	return found
end

-- The value of --gres for such a list, "" for an empty one.
function sutro.gres(found)
	local words = {}
	for _, one in ipairs(found) do
		words[#words + 1] = string.format("gres/%s:%d", one.name, one.count)
	end
	return table.concat(words, ",")
end

-- Is one of our resources requested in a field of the job?
local function requests(job)
	for _, field in ipairs(FIELDS) do
		local text = job[field]
		if type(text) == "string" and text:lower():find("sutro_", 1, true) then
			return true
		end
	end
	return false
end

local function changes_resources(job)
	for _, field in ipairs(FIELDS) do
		if job[field] ~= nil then
			return true
		end
	end
	return false
end

-- For slurm_job_submit(): add the resources to the job; nil, or a sentence for its user.
function sutro.submit(job)
	local found, mistake = sutro.parse(job.extra)
	if mistake then
		return mistake
	end
	if requests(job) then
		return "sutro: resources sutro_* are requested with " .. sutro.FORM
	end
	if #found > 0 then
		local others = job.tres_per_node
		if type(others) == "string" and others ~= "" then
			job.tres_per_node = others .. "," .. sutro.gres(found)
		else
			job.tres_per_node = sutro.gres(found)
		end
	end
	return nil
end

-- For slurm_job_modify(): a sentence if a change is about what the job has from Sutro.
function sutro.modify(job, before)
	local ours = is_ours(before.extra) or requests(before)
	if requests(job) or (job.extra ~= nil and job.extra ~= before.extra and (ours or is_ours(job.extra)))
		or (ours and changes_resources(job)) then
		return "sutro: floors of a job and resources beside them cannot be changed; cancel the job and "
			.. "submit it again"
	end
	return nil
end

return sutro
