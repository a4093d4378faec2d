#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of utils/gen_commands.py: the syntax line, what follows from a block, and what is refused."""

import glob
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../utils"))
from command_spec import SpecError, load_specs  # noqa: E402
from command_syntax import SyntaxLineError, parse_syntax  # noqa: E402
from gen_commands import generated_files, quote  # noqa: E402
import long_commands_page  # noqa: E402


ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
# All commands with tells_nothing: with replication-quorum their replies do not wait until replicas have confirmed what
# precedes them. Each was read for what it can say of the dataset; a new command waits until it is added here.
TELLS_NOTHING = """
asking auth bgrewriteaof bgsave discard echo failover hello info lastsave lolwut monitor multi ping psubscribe
psync punsubscribe quit readonly readwrite replconf replicaof reset role save select shutdown slaveof
ssubscribe subscribe sunsubscribe sync time unsubscribe unwatch
"""
TELLS_NOTHING_OF = {
    "acl": "cat delrole deluser digest dryrun export genpass getrole getuser help list load log roles save setrole setuser users whoami",
    "changes": "help",
    "client": "caching capa getname getredir help id import-source info kill list no-evict no-touch "
              "pause reply setinfo setname tracking trackinginfo unblock unpause",
    "cluster": "addslots addslotsrange bumpepoch cancelslotmigrations count-failure-reports delslots "
               "delslotsrange failover forget getslotmigrations help info keyslot links meet "
               "migrateslots myid myshardid nodes replicas replicate reset saveconfig "
               "set-config-epoch shards slaves slots syncslots",
    "commandlog": "help reset",
    "command": "count docs getkeys getkeysandflags help info list",
    "config": "get help info resetstat rewrite set",
    "function": "help kill",
    "himport": "discard discardall help prepare",
    "hotkeys": "help reset start stop",
    "latency": "doctor graph help histogram history latest reset",
    "memory": "help malloc-stats purge",
    "module": "help list",
    "object": "help",
    "pubsub": "channels help numpat numsub shardchannels shardnumsub",
    "script": "debug exists flush help kill load show",
    "slowlog": "help reset",
    "xgroup": "help",
    "xinfo": "help",
}


def load(blocks, group="string"):
    """The commands of one spec file with these blocks, each completed with what every block needs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "src/cmd/spec/x.json")
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            always = {"summary": "Does it.", "since": "1.0.0", "reply": "any", "proc": "xCommand"}
            json.dump({"group": group, **{name: {**always, **block} for name, block in blocks.items()}}, file)
        return load_specs([path])


def one(**block):
    return load({"X": block})[0]


class SyntaxLine(unittest.TestCase):
    def check(self, line, *nodes):
        self.assertEqual(parse_syntax(line), list(nodes))

    def test_names_have_types(self):
        self.check("key value count:integer pattern at:unix-time",
                   {"name": "key", "type": "key"}, {"name": "value", "type": "string"},
                   {"name": "count", "type": "integer"}, {"name": "pattern", "type": "pattern"},
                   {"name": "at", "type": "unix-time"})

    def test_token_takes_its_value_along(self):
        self.check("EX seconds:integer@2.6.12", {"name": "seconds", "type": "integer", "since": "2.6.12", "token": "EX"})
        self.check("NO ONE", {"name": "no", "type": "pure-token", "token": "NO"},
                   {"name": "one", "type": "pure-token", "token": "ONE"})

    def test_named_token_stands_alone(self):
        self.check("change=CH score", {"name": "change", "type": "pure-token", "token": "CH"},
                   {"name": "score", "type": "string"})
        self.check("all='*'", {"name": "all", "type": "pure-token", "token": "*"})
        self.check("empty=''", {"name": "empty", "type": "pure-token", "token": ""})

    def test_optional_and_repeated(self):
        self.check("[a]", {"name": "a", "type": "string", "flags": ["optional"]})
        self.check("a...", {"name": "a", "type": "string", "flags": ["multiple"]})
        self.check("[ID a...]", {"name": "a", "type": "string", "token": "ID", "flags": ["optional", "multiple"]})
        self.check("[GET a]...", {"name": "a", "type": "string", "token": "GET",
                                  "flags": ["optional", "multiple", "multiple_token"]})

    def test_groups(self):
        a, b = ({"name": "a", "type": "string"}, {"name": "b", "type": "string"})
        self.check("(x: a b)", {"name": "x", "type": "block", "arguments": [a, b]})
        self.check("[x@7.0.0: a | b]", {"name": "x", "type": "oneof", "since": "7.0.0", "arguments": [a, b],
                                        "flags": ["optional"]})
        self.check("[LIMIT (x: a b)]", {"name": "x", "type": "block", "arguments": [a, b], "token": "LIMIT",
                                        "flags": ["optional"]})

    def test_everything_behind_a_name(self):
        self.check("a'shown':pattern@..2.0#3", {"name": "a", "type": "pattern", "display_text": "shown",
                                                "deprecated_since": "2.0", "key_spec_index": 3})

    def test_extensions_are_marked(self):
        self.check("[A!]", {"name": "a", "type": "pure-token", "token": "A", "extended": True, "flags": ["optional"]})
        self.check("[A b:integer@9.1.0#2!]", {"name": "b", "type": "integer", "since": "9.1.0", "token": "A",
                                              "key_spec_index": 2, "extended": True, "flags": ["optional"]})
        self.check("[x!: A | B]", {"name": "x", "type": "oneof", "extended": True, "flags": ["optional"], "arguments": [
            {"name": "a", "type": "pure-token", "token": "A"}, {"name": "b", "type": "pure-token", "token": "B"}]})

    def test_refuses_what_it_cannot_read(self):
        for line in ("[a", "a]", "a | b", "(a b)", "(x: a)", "(x: a b | c)", "a:nothing", "[a]...", "!", "'*'",
                     "EX@2.0 a", "EX! a", "a!#1", "[a...]...", "x: a b"):
            with self.assertRaises(SyntaxLineError, msg=line):
                parse_syntax(line)


class Block(unittest.TestCase):
    def test_arity_follows_from_the_syntax(self):
        for line, arity in (("", 1), ("a", 2), ("a [b]", -2), ("a...", -2), ("LIMIT (x: a b)", 4),
                            ("(x: A | B)", 2), ("(x: A | B b)", -2), ("(data: a b)...", -3)):
            self.assertEqual(one(syntax=line).arity, arity, line)

    def test_containers_take_two_words(self):
        top = load({"X": {}, "X A": {"syntax": "key", "keys": "2 RO"}, "X B": {}})[0]
        self.assertEqual((top.arity, [sub.name for sub in top.subs]), (-2, ["x|a", "x|b"]))
        self.assertEqual(top.subs[0].arity, 3)

    def test_old_view_and_movable_keys(self):
        for line, keys, view, movable in (
                ("key", "1 RO", (1, 1, 1), False), ("key...", "1..-1 RO", (1, -1, 1), False),
                ("(data: key value)...", "1..-1/2 OW", (1, -1, 2), False),
                ("a:key b:key", ["1 RO", "2 OW"], (1, 2, 1), False),
                ("numkeys:integer key...", "1# RO", (0, 0, 0), True),
                ("key [STORE d:key]", ["1 RO", "STORE@2 OW"], (1, 1, 1), True)):
            command = one(syntax=line, keys=keys)
            self.assertEqual((command.old_view, "movablekeys" in command.flags), (view, movable), line)

    def test_categories_and_quick_follow_from_the_flags(self):
        command = one(flags="write fast", acl="string")
        self.assertEqual((command.categories, "quick" in command.flags), (["write", "string", "fast"], True))
        command = one(flags="admin blocking fast")
        self.assertEqual((command.categories, "quick" in command.flags),
                         (["admin", "fast", "blocking", "dangerous"], False))
        self.assertEqual(one(flags="readonly", acl="scripting").categories, ["slow", "scripting"])

    def test_refuses_with_file_and_command(self):
        for block in ({"syntax": "key"}, {"syntax": "key", "keys": "2 RO"}, {"keys": "1 XX"}, {"keys": "one RO"},
                      {"syntax": "key...", "keys": "1 RO"}, {"flags": "writes"}, {"flags": "write write"},
                      {"flags": "fast quick"}, {"flags": "movablekeys"}, {"acl": "write", "flags": "write"},
                      {"acl": "everything"}, {"reply": "text"}, {"proc": "x command"}, {"summary": ""}, {"nonsense": 1},
                      {"arity": 1}, {"history": ["1.0"]}, {"replaced_by": "Y"}, {"arg_summaries": {"a": "b"}},
                      {"group": "strings"}, {"flags": "sentinel only_sentinel"},
                      {"worst_case": "slow"}, {"worst_case": "slices"}, {"worst_case": "one_piece {set}"},
                      {"worst_case": "paced"}, {"worst_case": "quick {set}"}, {"worst_case": "quick: it is"}):
            with self.assertRaisesRegex(SpecError, r"src/cmd/spec/x\.json: X: ", msg=str(block)):
                one(**block)
        for blocks in ({"Y": {}, "X": {}}, {"X A": {}}, {"x": {}}):
            with self.assertRaises(SpecError, msg=str(blocks)):
                load(blocks)


class WorstCase(unittest.TestCase):
    def test_word_request_and_reason(self):
        for text, what, request, why in (("quick", "quick", None, None), ("slices {set} 0 -1", "slices", ["{set}", "0", "-1"], None),
                                         ("one_piece -: all of them: at once", "one_piece", [], "all of them: at once"),
                                         ("paced: in a child", "paced", None, "in a child"),
                                         ("paced k- {keyspace}: in parts", "paced", ["k-", "{keyspace}"], "in parts")):
            self.assertEqual(one(worst_case=text).worst_case, {"what": what, "request": request, "why": why})
        self.assertIsNone(one().worst_case)

    def test_each_command_has_one(self):
        page = long_commands_page.page_text(load({"X": {"worst_case": "slices {set} COUNT {count} {keyspace}"}}))
        self.assertIn("| `X SET COUNT N` |", page)
        with self.assertRaisesRegex(SpecError, "'worst_case' is missing"):
            long_commands_page.page_text(load({"X": {}}))


class TellsNothing(unittest.TestCase):
    def test_the_commands_of_the_server(self):
        commands = []
        for command in load_specs(sorted(glob.glob(os.path.join(ROOT, "src/*/spec/*.json")))):
            commands += [command, *command.subs]
        known = set(TELLS_NOTHING.split())
        for container, words in TELLS_NOTHING_OF.items():
            known |= {f"{container}|{word}" for word in words.split()}
        self.assertEqual({c.name for c in commands if "tells_nothing" in c.flags}, known)
        self.assertGreater(len(commands), 400)
        for command in commands:
            if command.name not in known:
                continue
            for flag in ("write", "may_replicate", "blocking", "movablekeys"):
                self.assertNotIn(flag, command.flags, command.name)


class Output(unittest.TestCase):
    def test_files_of_each_folder(self):
        files = generated_files(load({"X": {"proc": "xCommand", "find_keys": "xFindKeys"}}))
        self.assertEqual(sorted(files), ["src/cmd/procs.h", "src/server/generated/command_table.c"])
        self.assertIn("commandProc xCommand;\ncommandKeysProc xFindKeys;\n", files["src/cmd/procs.h"])
        self.assertIn("const int serverCommandCount = 1;", files["src/server/generated/command_table.c"])

    def test_texts_become_c(self):
        self.assertEqual(quote('a "b" \\ c'), '"a \\"b\\" \\\\ c"')
        self.assertEqual(quote(None), "NULL")


if __name__ == "__main__":
    unittest.main()
