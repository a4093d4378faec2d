#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random programs of XADD IDMP, XCFGSET and what may follow them, on two servers.   idmp_programs.py OURS PEER [--programs N]
[--seed N] [--record]

OURS and PEER are programs of servers; PEER is Redis 8.6 or later. Replies are compared without the ids: the first entry of a
program is #0, the next one #1. With --record the programs and the replies of PEER are written to assets/idmp_programs.txt,
which unit/type/stream_idmp.tcl runs.
"""
import argparse
import os
import random
import re
import sys

from servers import Server

here = os.path.dirname(os.path.abspath(__file__))
ID = re.compile(rb'^\d{10,}-\d+$')
FIELDS = ['idmp-duration', 'idmp-maxsize', 'pids-tracked', 'iids-tracked', 'iids-added', 'iids-duplicates']
DEFAULTS = [100, 100, 0, 0, 0, 0]


def program(r):
    """A list of commands; #n is the id of the n-th entry."""
    entries = 0
    made = iter(range(1000))

    def make(key):  # its ids do not depend on the clock, and are unlike those of other streams
        return ['XADD', key, '%d-1' % (4102444800000 + next(made)), 'first', 'entry']

    out = [make('k1'), make('k2')]
    for _ in range(r.randint(15, 60)):
        key = r.choice(['k1', 'k1', 'k1', 'k2'])
        n = '#%d' % r.randrange(entries + 1)
        kind = r.randrange(24)
        producer, iid = r.choice(['p', 'q', 'r']), r.choice('abcdefg')
        fields = r.choice([['f', 'v'], ['f', 'v', 'g', 'w'], ['g', 'w', 'f', 'v'], ['f', 'w'], ['f', 'vg', '', 'w']])
        trim = r.choice([[], [], [], ['MAXLEN', '3'], ['MAXLEN', '=', '2'], ['NOMKSTREAM']])
        if kind < 8:
            words = ['IDMP', producer, iid]
            both = trim + words if r.random() < 0.5 else words + trim
            out.append(['XADD', key] + both + ['*'] + fields)
            entries += 1
        elif kind < 11:
            out.append(['XADD', key, 'IDMPAUTO', producer] + trim + ['*'] + fields)
            entries += 1
        elif kind < 12:
            out.append(['XADD', key, '*'] + fields)
            entries += 1
        elif kind < 14:
            out.append(r.choice([['XDEL', key, n], ['XTRIM', key, 'MAXLEN', '1'], ['XTRIM', key, 'MAXLEN', '0']]))
        elif kind < 15:
            out.append(r.choice([['XCFGSET', key, 'IDMP-MAXSIZE', r.choice('1234')], ['XCFGSET', key, 'IDMP-DURATION', '300'],
                                 ['XCFGSET', key, 'IDMP-DURATION', '300', 'IDMP-MAXSIZE', '3']]))
        elif kind < 17:
            out.append(['XIDMPRECORD', key, producer, iid, n])
        elif kind < 18:
            out += r.choice([[['DEL', key], make(key)], [['COPY', 'k1', 'k2', 'REPLACE']], [['RENAME', 'k1', 'k2'], make('k1')],
                             [['MOVED', key]]])
        elif kind < 19:
            out.append(r.choice([
                ['XADD', key, 'IDMP', producer, iid, '5-5', 'f', 'v'], ['XADD', key, 'IDMP', '', iid, '*', 'f', 'v'],
                ['XADD', key, 'IDMP', producer, '', '*', 'f', 'v'], ['XADD', key, 'IDMPAUTO', '', '*', 'f', 'v'],
                ['XADD', key, 'IDMP', producer, iid, 'IDMPAUTO', producer, '*', 'f', 'v'], ['XADD', key, 'IDMP', producer],
                ['XADD', key, 'IDMP', producer, iid, '*', 'f'], ['XCFGSET', key], ['XCFGSET', key, 'IDMP-MAXSIZE', '0'],
                ['XCFGSET', key, 'IDMP-MAXSIZE', '10001'], ['XCFGSET', key, 'IDMP-MAXSIZE', 'x'],
                ['XCFGSET', key, 'IDMP-DURATION', '86401'], ['XCFGSET', key, 'IDMP-DURATION', '5', 'IDMP-DURATION', '6'],
                ['XCFGSET', key, 'OTHER', '5'], ['XIDMPRECORD', key, '', iid, '1-1'], ['XIDMPRECORD', key, producer, '', '1-1'],
                ['XIDMPRECORD', key, producer, iid, 'x'], ['XIDMPRECORD', key, producer, iid, '1-1']]))
        else:
            out.append(r.choice([['XLEN', key], ['INFO', key]]))
    return out + [['INFO', 'k1'], ['INFO', 'k2'], ['XLEN', 'k1'], ['XLEN', 'k2']]


def run(client, commands):
    """The replies, with ids as #n."""
    client('FLUSHALL')
    ids, out = [], []
    for words in commands:
        words = [ids[int(w[1:])] if w.startswith('#') and int(w[1:]) < len(ids) else w.replace('#', '99-') for w in words]
        if words[0] == 'INFO':
            reply = client('XINFO', 'STREAM', words[1])
            if isinstance(reply, list):
                have = {reply[i].decode(): reply[i + 1] for i in range(0, len(reply), 2)}
                reply = 'info ' + ' '.join(str(have.get(f, d)) for f, d in zip(FIELDS, DEFAULTS))
        elif words[0] == 'MOVED':
            payload = client('DUMP', words[1])
            reply = client('RESTORE', words[1], '0', payload, 'REPLACE') if payload else 'none'
        else:
            reply = client(*words)
        if isinstance(reply, bytes) and ID.match(reply):
            if reply not in ids:
                ids.append(reply)
            reply = '#%d' % ids.index(reply)
        out.append(reply.decode() if isinstance(reply, bytes) else 'null' if reply is None else str(reply))
    return out


def tcl(words):
    return ' '.join('{%s}' % w if w == '' or ' ' in w or w.startswith('#') else w for w in words)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('ours')
    p.add_argument('peer')
    p.add_argument('--programs', type=int, default=300)
    p.add_argument('--seed', type=int, default=random.randrange(1 << 30))
    p.add_argument('--record', action='store_true')
    options = p.parse_args()
    print('seed %d' % options.seed)
    servers = [Server(options.ours), Server(options.peer)]
    lines, failures = [], 0
    try:
        for i in range(options.programs):
            commands = program(random.Random(options.seed * 100003 + i))
            ours, peer = (run(s.client, commands) for s in servers)
            differing = [n for n in range(len(commands)) if ours[n] != peer[n]]
            if differing:
                failures += 1
                n = differing[0]
                print('program %d: %s\n  ours: %s\n  peer: %s' % (i, commands[:n + 1], ours[n], peer[n]))
            lines += ['program %d' % i] + ['  {%s} {%s}' % (tcl(c), r) for c, r in zip(commands, peer)]
    finally:
        for s in servers:
            s.stop()
    if options.record:
        with open(os.path.join(here, '..', 'assets', 'idmp_programs.txt'), 'w') as f:
            f.write('# Written by differential/idmp_programs.py: commands, and the replies of Redis 8.6\n' + '\n'.join(lines) + '\n')
    print('%d programs, %d differ' % (options.programs, failures))
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
