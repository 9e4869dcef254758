-- wrk: sends the header lines of a file in turn; each line is an Authorization value and, after tabs, a proof and
-- whole header lines.
-- Arguments: the file, "count" to count statuses one by one, "once" to stop where the file ends, seconds.
local ffi = require("ffi")
ffi.cdef [[
  struct portcullis_time { long s; long ns; };
  int clock_gettime(int clock, struct portcullis_time *time);
  int getpid(void);
  int kill(int process, int signal);
]]

local only
function setup(thread)
  only = thread
end

local time = ffi.new("struct portcullis_time")
local function now()
  ffi.C.clock_gettime(1, time)
  return tonumber(time.s) + tonumber(time.ns) / 1e9
end

local requests, size, sent, started = {}, 0, 0, 0
-- Globals: what done() asks for.
elapsed, statuses, prepared = 0, {}, 0

function init(args)
  local head = "GET " .. wrk.path .. " HTTP/1.1\r\nHost: " .. wrk.host .. ":" .. wrk.port .. "\r\n"
  for line in io.lines(args[1]) do
    local authorization, proof, more = line:match("^([^\t]*)\t?([^\t]*)\t?(.*)$")
    local lines = authorization ~= "" and ("Authorization: " .. authorization .. "\r\n") or ""
    if proof ~= "" then lines = lines .. "DPoP: " .. proof .. "\r\n" end
    if more ~= "" then lines = lines .. more:gsub("\t", "\r\n") .. "\r\n" end
    size = size + 1
    requests[size] = head .. lines .. "\r\n"
  end
  local once, seconds = args[3] == "once", tonumber(args[4])
  -- wrk itself waits until its time is over, in whole seconds; SIGINT ends that, and it still reports.
  local function finish()
    elapsed = now() - started
    ffi.C.kill(ffi.C.getpid(), 2)
  end

  if args[2] == "count" then
    function response(status)
      statuses[status] = (statuses[status] or 0) + 1
    end
  end

  function request()
    sent = sent + 1
    -- The first is made to see what it looks like, and never sent.
    if sent == 2 then started = now() end
    if once and sent > size then
      if elapsed == 0 then finish() end
      wrk.thread:stop()
      return requests[size]
    end
    if sent % 32 == 0 and elapsed == 0 and now() - started >= seconds then finish() end
    return requests[(sent - 1) % size + 1]
  end
  prepared = os.clock()
end

function done(summary, latency)
  local seconds, stopped = summary.duration / 1e6, only:get("elapsed")
  if stopped > 0 then seconds = stopped end
  local list = {}
  for status, count in pairs(only:get("statuses")) do
    list[#list + 1] = string.format('"%d":%d', status, count)
  end
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"seconds":%.6f,"requests":%d,"refused":%d,"broken":%d,"p50":%.1f,"p99":%.1f,"spent":%.6f,"statuses":{%s}}\n',
    seconds, summary.requests, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99), os.clock() - only:get("prepared"), table.concat(list, ",")
  ))
end
