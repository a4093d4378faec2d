# SPDX-License-Identifier: BSD-3-Clause
"""Is a history of several clients serializable, in an order that agrees with real time?

A history is a list of Op of each client, in its order: the words of the request, the reply, and when it was sent and
received, by one clock. fault_of() looks for one order of all operations in which each reply is what the model says: a
search over how far each client is and the dataset then, which remembers where it has been. An operation that had ended
before another one began comes first. So a reply of one moment, an effect at one moment, and a wait that reorders
requests of one client are all decided by the same search.

The model has sets (keys s...), sorted sets (z...), hashes (h...), lists of integers (l...). Values never change, so that
two datasets are compared quickly. MODEL has the commands; {name: function(state, words, reply)}, which returns the next
state, or None if the reply cannot be right in this one."""

from dataclasses import dataclass

NOTHING = {"s": frozenset(), "z": frozenset(), "h": frozenset(), "l": ()}


@dataclass
class Op:
    words: tuple
    reply: object
    begin: float
    end: float

    def __str__(self):
        reply = repr(self.reply)
        return f"[{self.begin:.6f}, {self.end:.6f}] {' '.join(map(str, self.words))[:120]} -> {reply[:120]}"


def get(state, key):
    return state.get(key, NOTHING[key[0]])


def put(state, key, value):
    after = dict(state)
    if value:
        after[key] = value
    else:
        after.pop(key, None)
    return after


def reads(function):
    """The model of a command that changes nothing: `function` tells whether the reply is right."""
    return lambda state, words, reply: state if function(state, words, reply) else None


def writes(function):
    """That of one that changes a key: `function` returns key, new value and the reply."""
    def apply(state, words, reply):
        key, value, expected = function(state, words)
        return put(state, key, value) if reply == expected else None
    return apply


def pairs(reply):
    """Of RESP2 and RESP3: [a, 1, b, 2] or [[a, 1], [b, 2]]."""
    if reply and isinstance(reply[0], list):
        return [tuple(pair) for pair in reply]
    return list(zip(reply[::2], reply[1::2]))


def scores(reply):
    return frozenset((member, float(score)) for member, score in pairs(reply))


def ranked(value):
    return sorted(value, key=lambda item: (item[1], item[0]))


def sources(state, words):
    """Of a command with the number of keys, or without."""
    keys = words[2:2 + int(words[1])] if str(words[1]).isdigit() else words[1:]
    return [get(state, key) for key in keys]


def combine_sets(kind, values):
    first, *rest = values
    for value in rest:
        first = {"UNION": first | value, "INTER": first & value, "DIFF": first - value}[kind]
    return first


def combine_scores(kind, values):
    first, *rest = (dict(value) for value in values)
    for value in rest:
        if kind == "DIFF":
            first = {m: s for m, s in first.items() if m not in value}
        else:
            members = first.keys() & value.keys() if kind == "INTER" else first.keys() | value.keys()
            first = {m: first.get(m, 0) + value.get(m, 0) for m in members}
    return frozenset(first.items())


def add_members(state, words):
    key, before = words[1], get(state, words[1])
    after = before | set(words[2:])
    return key, after, b"%d" % (len(after) - len(before))


def remove_members(state, words):
    key, before = words[1], get(state, words[1])
    after = before - set(words[2:])
    return key, after, b"%d" % (len(before) - len(after))


def add_scored(state, words):
    key, before = words[1], dict(get(state, words[1]))
    after = {**before, **{member: float(score) for score, member in zip(words[2::2], words[3::2])}}
    return key, frozenset(after.items()), b"%d" % (len(after) - len(before))


def remove_scored(state, words):
    key, members = words[1], set(words[2:])
    value = get(state, key)
    after = frozenset(item for item in value if item[0] not in members)
    return key, after, b"%d" % (len(value) - len(after))


def set_fields(state, words):
    key, before = words[1], dict(get(state, words[1]))
    after = {**before, **dict(zip(words[2::2], words[3::2]))}
    return key, frozenset(after.items()), b"%d" % (len(after) - len(before))


def remove_field(state, words):
    return remove_scored(state, words)


def remove_elements(state, words):
    key, element = words[1], words[3]
    after = tuple(x for x in get(state, key) if x != element)
    return key, after, b"%d" % (len(get(state, key)) - len(after))


def insert_element(state, words):
    key, where, pivot, element = words[1:]
    value = get(state, key)
    if pivot not in value:
        return key, value, b"-1" if value else b"0"
    at = value.index(pivot) + (where == "AFTER")
    return key, value[:at] + (element,) + value[at:], b"%d" % (len(value) + 1)


def trim(state, words):
    key, start, stop = words[1], int(words[2]), int(words[3])
    value = get(state, key)
    stop = stop + len(value) if stop < 0 else stop
    return key, value[start:stop + 1], b"OK"


def remove_ranks(state, words):
    key, start, stop = words[1], int(words[2]), int(words[3])
    gone = ranked(get(state, key))[start:stop + 1]
    return key, get(state, key) - frozenset(gone), b"%d" % len(gone)


def pop_members(state, words, reply):
    value, gone = get(state, words[1]), frozenset(reply)
    right = len(gone) == len(reply) == min(int(words[2]), len(value)) and gone <= value
    return put(state, words[1], value - gone) if right else None


def pop_first(state, words):
    key, value = words[1], get(state, words[1])
    if len(words) == 2:
        return key, value[1:], (value or (None,))[0]
    return key, value[words[2]:], list(value[:words[2]]) if value else None


def pop_lowest(state, words, reply):
    key, value = words[1], get(state, words[1])
    gone = ranked(value)[:words[2]]
    return put(state, key, value - frozenset(gone)) if [(m, float(s)) for m, s in pairs(reply)] == gone else None


def rename(state, words, reply):
    key, other = words[1:]
    if key not in state:
        return state if isinstance(reply, Exception) else None
    return put(put(state, key, None), other, state[key]) if reply == b"OK" else None


def copy(state, words):
    key, other = words[1:3]
    return other, state[key] if key in state else state.get(other), b"%d" % (key in state)


def delete(state, words):
    return words[1], None, b"%d" % (words[1] in state)


def transaction(state, words, reply):
    """words: ("EXEC", words of a command, ...)."""
    if not isinstance(reply, list) or len(reply) != len(words) - 1:
        return None
    for inner, part in zip(words[1:], reply):
        state = state and MODEL[inner[0]](state, inner, part)
        if state is None:
            return None
    return state


def store_into(combine):
    """`combine` gets the state and the words, and returns the value of the key words[1]."""
    def function(state, words):
        value = combine(state, words)
        return words[1], value, b"%d" % len(value)
    return writes(function)


MODEL = {
    "SMEMBERS": reads(lambda state, words, reply: frozenset(reply) == get(state, words[1])),
    "SCARD": reads(lambda state, words, reply: int(reply) == len(get(state, words[1]))),
    "HGETALL": reads(lambda state, words, reply: frozenset(pairs(reply)) == get(state, words[1])),
    "LRANGE": reads(lambda state, words, reply: tuple(reply) == get(state, words[1])),
    "SORT": reads(lambda state, words, reply: list(reply) == sorted(get(state, words[1]), key=int)),
    "ZRANGE": reads(lambda state, words, reply: [(m, float(s)) for m, s in pairs(reply)] == ranked(get(state, words[1]))),
    "KEYS": reads(lambda state, words, reply: {key.decode() for key in reply} == state.keys()),
    "SADD": writes(add_members),
    "SREM": writes(remove_members),
    "SPOP": pop_members,
    "HSET": writes(set_fields),
    "HDEL": writes(remove_field),
    "RPUSH": writes(lambda state, words: (words[1], get(state, words[1]) + words[2:], b"%d" % (len(get(state, words[1])) + len(words) - 2))),
    "LPUSH": writes(lambda state, words: (words[1], words[:1:-1] + get(state, words[1]), b"%d" % (len(get(state, words[1])) + len(words) - 2))),
    "LPOP": writes(pop_first),
    "ZPOPMIN": pop_lowest,
    "LREM": writes(remove_elements),
    "LINSERT": writes(insert_element),
    "LTRIM": writes(trim),
    "ZADD": writes(add_scored),
    "ZREM": writes(remove_scored),
    "ZREMRANGEBYRANK": writes(remove_ranks),
    "ZRANGESTORE": store_into(lambda state, words: frozenset(ranked(get(state, words[2]))[int(words[3]):int(words[4]) + 1])),
    "RENAME": rename,
    "COPY": writes(copy),
    "DEL": writes(delete),
    "EXEC": transaction,
}
for _kind in ("UNION", "INTER", "DIFF"):
    MODEL["S" + _kind] = reads(lambda state, words, reply, kind=_kind: frozenset(reply) == combine_sets(kind, sources(state, words)))
    MODEL["Z" + _kind] = reads(
        lambda state, words, reply, kind=_kind: scores(reply) == combine_scores(kind, sources(state, words)))
    MODEL[f"S{_kind}STORE"] = store_into(lambda state, words, kind=_kind: combine_sets(kind, sources(state, words[1:])))
    MODEL[f"Z{_kind}STORE"] = store_into(lambda state, words, kind=_kind: combine_scores(kind, sources(state, words[1:])))


def next_clients(clients, at):
    """The clients whose next operation may be the next one: none that has not been done ended before it began."""
    waiting = [i for i, ops in enumerate(clients) if at[i] < len(ops)]
    earliest = min((clients[i][at[i]].end for i in waiting), default=None)
    return [i for i in waiting if clients[i][at[i]].begin <= earliest]


def fault_of(clients, initial, final=None):
    """`clients`: a list of Op for each. `initial`, `final`: the datasets before and after, {key: value}. Returns "" if
    there is an order, else a text that says how far the longest one gets."""
    start = ((0,) * len(clients), initial)
    stack, seen, farthest = [start], set(), start
    while stack:
        at, state = stack.pop()
        mark = (at, frozenset(state.items()))
        if mark in seen:
            continue
        seen.add(mark)
        if sum(at) > sum(farthest[0]):
            farthest = at, state
        if all(i == len(ops) for i, ops in zip(at, clients)):
            if final is None or state == final:
                return ""
            continue
        for i in next_clients(clients, at):
            op = clients[i][at[i]]
            after = MODEL[op.words[0]](state, op.words, op.reply)
            if after is not None:
                stack.append((at[:i] + (at[i] + 1,) + at[i + 1:], after))
    at = farthest[0]
    lines = [f"no order explains more than {sum(at)} of {sum(map(len, clients))} operations; none of these can be next:"]
    lines += [f"  client {i}: {ops[at[i]]}" for i, ops in enumerate(clients) if at[i] < len(ops)]
    if len(lines) == 1:
        lines = ["each order ends with another dataset than the server has"]
    return "\n".join(lines)
