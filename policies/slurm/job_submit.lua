-- SPDX-License-Identifier: LGPL-2.1-or-later
--
-- /etc/slurm/job_submit.lua of a site that has no other one; see Documentation/guides/slurm.rst. A
-- site that has one calls sutro.submit() and sutro.modify() from its own functions, after its own
-- changes of the job.

local sutro = dofile("/usr/share/sutro-slurm/sutro.lua")

local function verdict(mistake)
	if not mistake then
		return slurm.SUCCESS
	end
	slurm.log_user("%s", mistake)
	return slurm.ERROR
end

function slurm_job_submit(job, partitions, uid)
	return verdict(sutro.submit(job))
end

function slurm_job_modify(job, before, partitions, uid)
	return verdict(sutro.modify(job, before))
end

return slurm.SUCCESS
