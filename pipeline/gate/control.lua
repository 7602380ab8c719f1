-- An operator's or an incident's hand on the gate: 'pause', 'resume', 'rearm', 'abandon' or
-- 'started': items that were let go while Redis was away.
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
  if not is_set('open_since') then
    open_breaker(number())
  end
else
  while argument < #ARGV do
    if redis.call('ZREM', PARKED, text()) == 1 and verb == 'started' then
      count('rate_limited_items_redistributed')
    end
  end
end
save()
return 1
