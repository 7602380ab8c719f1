-- State, window and line of one provider and model. This text precedes each script, between clock.lua and breaker.lua
-- (the circuit breaker). It touches only its KEYS. Times are seconds of clock(), written with microseconds. Redis runs
-- a script atomically, so no step below needs a lock.
local STATE, WINDOW, BUCKETS, LEASES, OUTCOMES = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local LINE, LINE_UNTIL, SERVED, LIMITED, RATIOS = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]

local BUCKET_S = 0.05
local SPENT_PARTS = 300 -- bookings that fill the window of an empty Redis
local RAMP_ENDS_AT = 1000 -- starts in a step at which the ramp ends, even if the quota is larger
local TURN_S = 0.02 -- seconds between the asks of neighbours in the line
local LIMITED_TTL_S = 86400
local RATIO_TTL_S = 2592000

local now = clock()
local argument = 1
local function text()
  argument = argument + 1
  return ARGV[argument]
end
local function number()
  return tonumber(text())
end

-- The configuration comes packed into one argument, because it is the same from ask to ask.
local cfg = {}
do
  local names = {
    'requests', 'tokens', 'per_day', 'window', 'guard', -- 0 requests or tokens: no limit
    'ramp_first', 'ramp_growth', 'ramp_step',
    'cooldown_base', 'cooldown_cap', 'quiet',
    'breaker_window', 'breaker_failures', 'breaker_share', 'probe',
    'lease', 'poll', 'patience', 'day_ends',
    'arms', -- 1: the asker can arm an empty limiter from the database
  }
  local values = {struct.unpack('>' .. string.rep('d', #names), ARGV[1])}
  for i, name in ipairs(names) do
    cfg[name] = values[i]
  end
end

local FIELDS = {
  'born', 'armed', 'requests', 'tokens', -- totals of the window
  'oldest', 'newest', -- first and last bucket of the window
  'guard', 'guard_at',
  'generation', 'until', 'consecutive', -- cooldown; 'until' stays after the cooldown is over
  'ramp_from', 'ramp_step', 'ramp_starts', -- ramp_from: '' no ramp, '0' starts with the next call
  'epoch', 'open_since', 'first_failure', 'probe_at', 'probe_ticket', 'probe_until', -- see breaker.lua
  'latest', 'succeeded_at', 'failing_since', 'failed_in_row', 'failed_again',
  'paused', 'closed_until', 'day_ends', 'day_calls', 'served',
}

local st = {}
local changed = {}

local function set(field, value)
  if type(value) == 'number' then
    value = value % 1 == 0 and string.format('%.0f', value) or string.format('%.6f', value)
  end
  st[field] = value
  changed[field] = value
end

local function num(field)
  return tonumber(st[field]) or 0
end

local function is_set(field)
  return st[field] and st[field] ~= ''
end

local function count(counter)
  redis.call('HINCRBY', STATE, counter, 1)
end

local function save()
  local flat = {}
  for field, value in pairs(changed) do
    flat[#flat + 1] = field
    flat[#flat + 1] = value
  end
  if #flat > 0 then
    redis.call('HSET', STATE, unpack(flat))
  end
end

local function span()
  return cfg.window + num('guard')
end

-- Seconds until a bucket has left the window, including the guard.
local function left_in(bucket)
  return (tonumber(bucket) + 1) * BUCKET_S + span() - now
end

local function book(at, requests, tokens)
  -- A clock that was set back books into the newest bucket. The entry then expires late, but the list of buckets stays
  -- in order.
  local bucket = math.max(math.floor(at / BUCKET_S), tonumber(st.newest) or 0)
  bucket = string.format('%.0f', bucket)
  local is_new = st.newest ~= bucket
  if is_new then
    redis.call('RPUSH', BUCKETS, bucket)
    set('newest', bucket)
    if not is_set('oldest') then
      set('oldest', bucket)
    end
  end
  redis.call('HINCRBY', WINDOW, bucket .. 'r', requests)
  redis.call('HINCRBY', WINDOW, bucket .. 't', string.format('%.0f', tokens))
  set('requests', num('requests') + requests)
  set('tokens', num('tokens') + tokens)
  return bucket, is_new
end

local function begin_ramp()
  set('ramp_from', '0')
  set('ramp_step', 0)
  set('ramp_starts', 0)
end

local function forget_window()
  redis.call('DEL', BUCKETS, WINDOW)
  set('requests', 0)
  set('tokens', 0)
  set('oldest', '')
  set('newest', '')
end

-- Redis was empty, so the calls of the last minute are unknown. Book the whole quota evenly over the window; it then
-- becomes free at the quota's own rate. 'rearm' in control.lua replaces this by the calls that the database knows.
local function be_born()
  set('born', now)
  set('epoch', 0)
  set('generation', 0)
  if cfg.requests == 0 and cfg.tokens == 0 then
    return
  end
  begin_ramp()
  local parts = cfg.requests > 0 and math.min(cfg.requests, SPENT_PARTS) or SPENT_PARTS
  for i = 0, parts - 1 do
    local function share(whole)
      return math.floor((i + 1) * whole / parts) - math.floor(i * whole / parts)
    end
    book(now - (parts - 1 - i) / parts * span(), share(cfg.requests), share(cfg.tokens))
  end
end

-- The totals of the window are kept beside the buckets, so that an ask need not add up to 1,200 buckets.
local function forget_old_buckets()
  if not is_set('newest') then
    return
  end
  if left_in(st.newest) <= 0 then
    forget_window()
    return
  end
  while left_in(st.oldest) <= 0 do
    local bucket = redis.call('LPOP', BUCKETS)
    local spent = redis.call('HMGET', WINDOW, bucket .. 'r', bucket .. 't')
    redis.call('HDEL', WINDOW, bucket .. 'r', bucket .. 't')
    set('requests', num('requests') - (tonumber(spent[1]) or 0))
    set('tokens', num('tokens') - (tonumber(spent[2]) or 0))
    set('oldest', redis.call('LINDEX', BUCKETS, 0) or st.newest)
  end
end

-- Keep the largest guard that any process sent within the last window and this guard: a call that was in time by a
-- guard holds its place for that guard.
local function keep_guard()
  if not is_set('guard') or cfg.guard >= num('guard')
    or now - num('guard_at') > span() then
    if cfg.guard ~= num('guard') or now - num('guard_at') > 1 then
      set('guard', cfg.guard)
      set('guard_at', now)
    end
  end
end

-- The process computes midnight Pacific (`day_ends`), because Lua in Redis has no time zones.
local function begin_day()
  if now < num('day_ends') then
    return
  end
  set('day_calls', 0)
  set('day_ends', cfg.day_ends > now and cfg.day_ends or cfg.day_ends + 86400)
end

do
  local values = redis.call('HMGET', STATE, unpack(FIELDS))
  for i, field in ipairs(FIELDS) do
    st[field] = values[i] or nil
  end
  keep_guard()
  if not is_set('born') then
    be_born()
  end
  forget_old_buckets()
  begin_day()
end

local function ratio_of(version)
  local kept = redis.call('HGET', RATIOS, version)
  if not kept then
    return nil
  end
  local mean, deviation, calls = string.match(kept, '^(%S+) (%S+) (%d+)$')
  return tonumber(mean), tonumber(deviation), tonumber(calls)
end

-- Starts of a ramp step, and whether the quota is already the tighter limit.
local function ramp_limit(step)
  local limit = math.floor(cfg.ramp_first * cfg.ramp_growth ^ step)
  local quota = cfg.requests > 0 and math.min(cfg.requests, RAMP_ENDS_AT) or RAMP_ENDS_AT
  return limit, limit >= quota
end
