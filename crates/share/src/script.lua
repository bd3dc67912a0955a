-- Adds a batch of a process to the counters of entries, once, and returns what all processes counted.
--
-- KEYS: the key with the number of the last batch of the process, and those of the entries.
-- ARGV: the number of the batch; the number of the last batch that the process knows to be here; the
-- expiry of entries and that of the process's key, in milliseconds; the number of fields; their
-- names; their kinds ('s' a sum, 't' a tag, else the period of a rate); then, per entry, its changes
-- in the order of the fields, separated by spaces; '+' for an entry that was used without changes,
-- and nothing for one that is only read. An entry lives on if it was used.
--
-- Returns {'ok', milliseconds, values per entry}, where values are false for an entry that does not
-- exist and {reason} for one that cannot be changed or read; {'last', number} if the process has to go on from
-- another batch, or {'lost'} if nothing of the process is here.
local number, after = tonumber(ARGV[1]), tonumber(ARGV[2])
local expire, keep, count = ARGV[3], ARGV[4], tonumber(ARGV[5])

local last = tonumber(redis.call('GET', KEYS[1]) or '')
if not last then
    if after > 0 then
        return {'lost'}
    end
    last = 0
elseif last ~= after and (last < after or last < number) then
    return {'last', last}
end
local is_new = number > last
if is_new then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', keep)
elseif last > 0 then
    redis.call('PEXPIRE', KEYS[1], keep)
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local names, kinds = {}, {}
for field = 1, count do
    names[field] = ARGV[5 + field]
    kinds[field] = ARGV[5 + count + field]
end

local function exchange(key, text)
    local changes, any = {}, false
    if is_new and text ~= '+' then
        for change in string.gmatch(text, '%S+') do
            changes[#changes + 1] = change
        end
    end
    for field, change in ipairs(changes) do
        if kinds[field] == 's' and change ~= '0' then
            redis.call('HINCRBY', key, names[field], change)
            any = true
        elseif kinds[field] == 't' and change ~= '-' then
            redis.call('HSET', key, names[field], change)
            any = true
        end
    end
    local values = redis.call('HMGET', key, unpack(names))
    local exists = false
    for field = 1, count do
        local value, kind = values[field], kinds[field]
        exists = exists or value
        if kind == 's' then
            values[field] = value or '0'
        elseif kind == 't' then
            values[field] = value or '-'
        else
            local window = math.floor(now / tonumber(kind))
            local began, current, previous = string.match(value or '', '^(%d+):(%d+):(%d+)$')
            began, current, previous = tonumber(began), tonumber(current) or 0, tonumber(previous) or 0
            if began == window - 1 then
                current, previous = 0, current
            elseif began ~= window then
                current, previous = 0, 0
            end
            local events = tonumber(changes[field]) or 0
            if events > 0 then
                current = current + events
                redis.call('HSET', key, names[field], string.format('%.0f:%.0f:%.0f', window, current, previous))
                any, exists = true, true
            end
            values[field] = string.format('%.0f,%.0f', current, previous)
        end
    end
    if any or (exists and text ~= '') then
        redis.call('PEXPIRE', key, expire)
    end
    return exists and table.concat(values, ' ')
end

local answer = {'ok', string.format('%.0f', now)}
for at = 2, #KEYS do
    -- Another program may use the key for something else, or the account lacks a command.
    local fine, values = pcall(exchange, KEYS[at], ARGV[4 + 2 * count + at])
    if not fine then
        values = {type(values) == 'table' and values.err or tostring(values)}
    end
    answer[#answer + 1] = values
end
return answer
