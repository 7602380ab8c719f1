-- The circuit breaker of one provider and model. This text precedes each script, after common.lua. The breaker trips
-- (feed_breaker), stays open while probe calls fail (probe_wait, begin_probe), and closes when the provider is
-- reachable again (heed_breaker). Settings: GATE_BREAKER_* and GATE_PROBE_S in config.py. Outcomes of codes: types.py.
-- The stored field 'first_failure' is `outage_since` in Python.
local SLOTS, RECENT = 20, 4 -- parts of the breaker's window, and how many of them are also judged by themselves
local LATEST = 20 -- calls by whose outcomes the end of a step is judged
local AGAIN = 2 -- failures of calls that started after the first failure in a row
local STALE_WINDOWS = 3 -- windows without a success after which earlier successes say nothing

local function is_breaker_open()
  return is_set('open_since')
end

local function forget_latest()
  set('latest', '')
  set('failing_since', '')
end

-- A new epoch makes the breaker ignore calls that began earlier. The counts are deleted, so that the window after the
-- outage does not start with failures of the outage.
local function trip_breaker(first_failure)
  set('open_since', now)
  set('first_failure', first_failure)
  set('probe_at', now + cfg.probe)
  set('probe_ticket', '')
  set('epoch', num('epoch') + 1)
  redis.call('DEL', OUTCOMES)
  forget_latest()
  count('breaker_trips')
end

-- The calls that waited must not all start at once against a provider that has just recovered: begin a ramp.
local function close_breaker()
  set('outage_from', st.first_failure)
  set('outage_until', now)
  set('open_since', '')
  set('first_failure', '')
  set('probe_ticket', '')
  redis.call('DEL', OUTCOMES)
  begin_ramp()
end

-- Seconds until the next probe call may start, or nil if a call may start now. One probe call at a time goes out. A
-- probe call whose worker died frees its place when its lease ends.
local function probe_wait()
  if not is_breaker_open() then
    return nil
  end
  if num('probe_at') > now then
    return num('probe_at') - now
  end
  if is_set('probe_ticket') and num('probe_until') > now then
    return math.min(num('probe_until') - now, cfg.poll)
  end
  return nil
end

local function begin_probe(ticket)
  set('probe_ticket', ticket)
  set('probe_until', now + cfg.lease)
end

local function is_down(failures, calls)
  return failures >= cfg.breaker_failures and failures >= cfg.breaker_share * calls
end

-- With few calls in flight, at the end of a step, a few slow failures are half of the window, although the calls around
-- them succeeded. So the latest calls are judged too, however old they are. 'latest' has one character per call, the
-- newest last.
local function note_latest(kind, started_at)
  set('latest', string.sub((st.latest or '') .. (kind == 'failed' and 'x' or '.'), -LATEST))
  if kind == 'ok' then
    if now - num('succeeded_at') > cfg.breaker_window / SLOTS then
      set('succeeded_at', now)
    end
    if is_set('failing_since') then
      set('failing_since', '')
    end
  elseif not is_set('failing_since') or now - num('failing_since') > cfg.breaker_window then
    set('failing_since', now)
    set('failed_in_row', 1)
    set('failed_again', 0)
  else
    set('failed_in_row', num('failed_in_row') + 1)
    if started_at and started_at > num('failing_since') then
      set('failed_again', num('failed_again') + 1)
    end
  end
end

local function has_latest_failed()
  if now - num('succeeded_at') > STALE_WINDOWS * cfg.breaker_window then
    return true
  end
  local _, failures = string.gsub(st.latest, 'x', '')
  return failures >= cfg.breaker_share * #st.latest
end

-- In an outage, the calls that start after the first failure fail too. This shows an outage even if hardly a call is in
-- flight, while the window still holds many successes.
local function fails_in_row()
  return is_set('failing_since') and num('failed_in_row') >= cfg.breaker_failures and num('failed_again') >= AGAIN
end

-- At full load the breaker's window still holds old successes. Its failure share reaches 50 % only after half the
-- window, so the last fifth is judged too.
local function feed_breaker(kind, started_at)
  note_latest(kind, started_at)
  local current = math.floor(now / cfg.breaker_window * SLOTS)
  local prefix = string.format('%.0f', current)
  if kind == 'failed' then
    redis.call('HSETNX', OUTCOMES, prefix .. ' first', string.format('%.6f', now))
  end
  local is_new = redis.call('HINCRBY', OUTCOMES, prefix .. ' ' .. kind, 1) == 1
  -- A success trips nothing. The first success of a part drops the parts that have left the window.
  if kind == 'ok' and not is_new then
    return
  end
  local kept = redis.call('HGETALL', OUTCOMES)
  local failures, calls, first_failure, recent_failures, recent_calls = 0, 0, now, 0, 0
  for i = 1, #kept, 2 do
    local slot, what = string.match(kept[i], '^(%d+) (%a+)$')
    local age, value = current - tonumber(slot), tonumber(kept[i + 1])
    if age >= SLOTS then
      redis.call('HDEL', OUTCOMES, kept[i])
    elseif what == 'first' then
      first_failure = math.min(first_failure, value)
    else
      local failed = what == 'failed' and value or 0
      failures, calls = failures + failed, calls + value
      if age < RECENT then
        recent_failures, recent_calls = recent_failures + failed, recent_calls + value
      end
    end
  end
  if kind == 'ok' then
    return
  end
  if (is_down(failures, calls) or is_down(recent_failures, recent_calls)) and has_latest_failed()
    or fails_in_row() then
    trip_breaker(first_failure)
  end
end

-- Only a probe call carries the epoch of an open breaker. A call that began earlier says nothing about now.
local function heed_breaker(ticket, epoch, kind, is_first, started_at)
  local is_current = epoch >= num('epoch')
  if is_breaker_open() then
    -- Looser than `was_processed` of the incident rules (incidents/rules.py): a refusal by limit, quota or key comes
    -- from a provider that is up.
    local is_reachable = kind == 'ok' or kind == 'limited' or kind == 'quota'
    -- An emptied Redis counts its epochs from 0, so a call from before has a high epoch; its lease is gone.
    if is_current and is_first and is_reachable then
      close_breaker()
    elseif st.probe_ticket == ticket then
      set('probe_ticket', '')
      set('probe_at', now + cfg.probe)
    end
  elseif is_current and is_first and (kind == 'ok' or kind == 'failed') then
    feed_breaker(kind, started_at)
  end
end
