-- An operator's or an incident's hand on the gate: 'pause', 'resume', 'rearm', 'abandon' or
-- 'started': items that were let go while Redis was away; and 'late': a call that went out later
-- than the guard allows for is booked when it did.
local verb = text()
if verb == 'pause' then
  set('paused', text())
elseif verb == 'resume' then
  if is_set('paused') or num('closed_until') > now then
    begin_ramp()
  end
  set('paused', '')
  set('closed_until', 0)
  redis.call('DEL', LINE, LINE_UNTIL)
elseif verb == 'rearm' then
  local failing_since, closed_until, reason = number(), number(), text()
  if not is_set('armed') then
    if failing_since > 0 and not is_set('open_since') then
      open_breaker(failing_since)
    end
    if closed_until > now then
      set('closed_until', math.max(num('closed_until'), closed_until))
    end
    if reason ~= '' then
      set('paused', reason)
    end
    set('armed', 1)
  end
elseif verb == 'late' then
  local bucket, tokens = text(), number()
  if redis.call('HEXISTS', WINDOW, bucket .. 'r') == 1 then
    redis.call('HINCRBY', WINDOW, bucket .. 'r', -1)
    redis.call('HINCRBY', WINDOW, bucket .. 't', string.format('%.0f', -tokens))
    set('requests', num('requests') - 1)
    set('tokens', num('tokens') - tokens)
  end
  book(now, 1, tokens)
else
  while argument < #ARGV do
    if redis.call('ZREM', PARKED, text()) == 1 and verb == 'started' then
      count('rate_limited_items_redistributed')
    end
  end
end
save()
return 1
