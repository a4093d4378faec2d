/* SPDX-License-Identifier: BSD-3-Clause
 *
 * COMMAND and its subcommands. The reply shows commands under the names in their specs; arguments
 * refer to them by the names that clients use (after renames). */
#include "base/base.h"
#include "base/glob.h"
#include "cmd/procs.h"
#include "engine/reply.h"

/* ---- COMMAND INFO */

static void replyFlags(ctx *c, uint64_t flags) {
    const char *names[CMD_PRINTED_BITS];
    int count = 0;
    for (int bit = 0; bit < CMD_PRINTED_BITS; bit++) {
        if (flags & CMD_BIT(bit)) names[count++] = commandFlagName(CMD_BIT(bit));
    }
    replySet(c, count);
    for (int i = 0; i < count; i++) replyStatus(c, sliceOf(names[i]));
}

static void replyCategories(ctx *c, uint64_t categories) {
    replySet(c, __builtin_popcountll(categories));
    str text = STR_EMPTY;
    for (; categories; categories &= categories - 1) {
        strClear(&text);
        strAppend(&text, "@", 1);
        strAppendText(&text, commandCategoryName(__builtin_ctzll(categories)));
        replyStatus(c, strSlice(&text));
    }
    strFree(&text);
}

static void replyKeyFlags(ctx *c, uint32_t flags) {
    static const char *const names[] = {
        "RO",     "RW",     "OW",      "RM",         "access",        "update",
        "insert", "delete", "not_key", "incomplete", "variable_flags"};
    replySet(c, __builtin_popcount(flags));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (flags & 1u << i) replyStatus(c, sliceOf(names[i]));
    }
}

static void replyTextField(ctx *c, const char *name, const char *value) {
    replyBulkText(c, name);
    replyBulkText(c, value);
}

static void replyKeyBegin(ctx *c, const keySpec *spec) {
    static const char *const types[] = {[KEY_BEGIN_INDEX] = "index",
                                        [KEY_BEGIN_KEYWORD] = "keyword",
                                        [KEY_BEGIN_UNKNOWN] = "unknown"};
    replyBulkText(c, "begin_search");
    replyMap(c, 2);
    replyTextField(c, "type", types[spec->begin]);
    replyBulkText(c, "spec");
    switch (spec->begin) {
    case KEY_BEGIN_INDEX:
        replyMap(c, 1);
        replyIntField(c, "index", spec->begin_at);
        break;
    case KEY_BEGIN_KEYWORD:
        replyMap(c, 2);
        replyTextField(c, "keyword", spec->keyword);
        replyIntField(c, "startfrom", spec->begin_at);
        break;
    case KEY_BEGIN_UNKNOWN: replyMap(c, 0); break;
    }
}

static void replyKeyFind(ctx *c, const keySpec *spec) {
    static const char *const types[] = {
        [KEY_FIND_RANGE] = "range", [KEY_FIND_KEYNUM] = "keynum", [KEY_FIND_UNKNOWN] = "unknown"};
    replyBulkText(c, "find_keys");
    replyMap(c, 2);
    replyTextField(c, "type", types[spec->find]);
    replyBulkText(c, "spec");
    switch (spec->find) {
    case KEY_FIND_RANGE:
        replyMap(c, 3);
        replyIntField(c, "lastkey", spec->last);
        replyIntField(c, "keystep", spec->step);
        replyIntField(c, "limit", spec->limit);
        break;
    case KEY_FIND_KEYNUM:
        replyMap(c, 3);
        replyIntField(c, "keynumidx", spec->keynum_index);
        replyIntField(c, "firstkey", spec->first_key);
        replyIntField(c, "keystep", spec->keynum_step);
        break;
    case KEY_FIND_UNKNOWN: replyMap(c, 0); break;
    }
}

static void replyKeySpecs(ctx *c, const commandSpec *spec) {
    replySet(c, spec->key_spec_count);
    for (int i = 0; i < spec->key_spec_count; i++) {
        const keySpec *keys = &spec->key_specs[i];
        replyMap(c, keys->notes ? 4 : 3);
        if (keys->notes) replyTextField(c, "notes", keys->notes);
        replyBulkText(c, "flags");
        replyKeyFlags(c, keys->flags);
        replyKeyBegin(c, keys);
        replyKeyFind(c, keys);
    }
}

static void replyInfo(ctx *c, const command *cmd) {
    const commandSpec *spec = cmd->spec;
    replyArray(c, 10);
    replyBulk(c, cmd->name);
    replyInteger(c, cmd->arity);
    replyFlags(c, cmd->flags);
    replyInteger(c, cmd->first_key);
    replyInteger(c, cmd->last_key);
    replyInteger(c, cmd->key_step);
    replyCategories(c, spec->categories);
    replySet(c, spec->tip_count);
    for (int i = 0; i < spec->tip_count; i++) replyBulkText(c, spec->tips[i]);
    replyKeySpecs(c, spec);
    replyArray(c, cmd->sub_count);
    for (int i = 0; i < cmd->sub_count; i++) replyInfo(c, &cmd->subs[i]);
}

static void infoOfEach(const command *cmd, void *arg) { replyInfo(arg, cmd); }

/* COMMAND. Reply: an array with the description of each command. */
void commandCommand(ctx *c) {
    replyArray(c, commandCount());
    commandEach(infoOfEach, c);
}

/* COMMAND INFO [name ...]. Reply: like COMMAND, with null for unknown names. */
void commandInfoCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    if (c->argc == 2) {
        commandCommand(c);
        return;
    }
    replyArray(c, c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        const command *cmd = commandFindByFullName(c->argv[i]);
        if (cmd) {
            replyInfo(c, cmd);
        } else {
            replyNull(c);
        }
    }
}

/* COMMAND COUNT. Reply: number of commands, not counting subcommands. */
void commandCountCommand(ctx *c) { replyInteger(c, commandCount()); }

/* ---- COMMAND DOCS */

static void replyArgFlags(ctx *c, uint32_t flags) {
    flags &= ~(uint32_t)ARG_EXTENDED;
    replySet(c, __builtin_popcount(flags));
    if (flags & ARG_OPTIONAL) replyStatus(c, SLICE("optional"));
    if (flags & ARG_MULTIPLE) replyStatus(c, SLICE("multiple"));
    if (flags & ARG_MULTIPLE_TOKEN) replyStatus(c, SLICE("multiple_token"));
}

static int replyTextFieldIf(ctx *c, const char *name, const char *value) {
    if (!value) return 0;
    replyTextField(c, name, value);
    return 1;
}

static void replyArgs(ctx *c, const commandArg *args, int count);

static void replyArg(ctx *c, const commandArg *arg) {
    static const char *const types[] = {
        [ARG_STRING] = "string",         [ARG_INTEGER] = "integer",
        [ARG_DOUBLE] = "double",         [ARG_KEY] = "key",
        [ARG_PATTERN] = "pattern",       [ARG_UNIX_TIME] = "unix-time",
        [ARG_PURE_TOKEN] = "pure-token", [ARG_ONEOF] = "oneof",
        [ARG_BLOCK] = "block",
    };
    respDeferred map = respDeferBegin(c->out);
    int fields = 2;
    replyTextField(c, "name", arg->name);
    replyTextField(c, "type", types[arg->type]);
    if (arg->type != ARG_ONEOF && arg->type != ARG_BLOCK) {
        fields += replyTextFieldIf(c, "display_text", arg->display ? arg->display : arg->name);
    }
    if (arg->key_spec >= 0) {
        replyIntField(c, "key_spec_index", arg->key_spec);
        fields++;
    }
    fields += replyTextFieldIf(c, "token", arg->token);
    fields += replyTextFieldIf(c, "summary", arg->summary);
    fields += replyTextFieldIf(c, "since", arg->since);
    fields += replyTextFieldIf(c, "deprecated_since", arg->deprecated_since);
    if (arg->flags & ~ARG_EXTENDED) {
        replyBulkText(c, "flags");
        replyArgFlags(c, arg->flags);
        fields++;
    }
    if (arg->count > 0) {
        replyBulkText(c, "arguments");
        replyArgs(c, arg->args, arg->count);
        fields++;
    }
    respDeferEnd(c->out, map, '%', c->proto, fields);
}

static bool argIsHidden(const commandArg *arg) {
    return arg->flags & ARG_EXTENDED && !commandHasExtensions();
}

static void replyArgs(ctx *c, const commandArg *args, int count) {
    hotCheck(count >= 0);
    int shown = 0;
    for (int i = 0; i < count; i++) shown += !argIsHidden(&args[i]);
    replyArray(c, shown);
    for (int i = 0; i < count; i++) {
        if (!argIsHidden(&args[i])) replyArg(c, &args[i]);
    }
}

static int replyDocFlags(ctx *c, uint64_t flags) {
    if (!(flags & (CMD_DEPRECATED | CMD_INTERNAL))) return 0;
    replyBulkText(c, "doc_flags");
    replySet(c, __builtin_popcountll(flags & (CMD_DEPRECATED | CMD_INTERNAL)));
    if (flags & CMD_DEPRECATED) replyStatus(c, SLICE("deprecated"));
    if (flags & CMD_INTERNAL) replyStatus(c, SLICE("syscmd"));
    return 1;
}

static int replyHistory(ctx *c, const commandSpec *spec) {
    if (spec->history_count == 0) return 0;
    replyBulkText(c, "history");
    replySet(c, spec->history_count);
    for (int i = 0; i < spec->history_count; i++) {
        replyArray(c, 2);
        replyBulkText(c, spec->history[i].since);
        replyBulkText(c, spec->history[i].text);
    }
    return 1;
}

/* Replies name and documentation as one pair of a map. */
static void replyDocs(ctx *c, const command *cmd) {
    const commandSpec *spec = cmd->spec;
    replyBulk(c, cmd->name);
    respDeferred map = respDeferBegin(c->out);
    int fields = 1;
    fields += replyTextFieldIf(c, "summary", spec->summary);
    fields += replyTextFieldIf(c, "since", spec->since);
    replyTextField(c, "group", spec->group);
    fields += replyTextFieldIf(c, "complexity", spec->complexity);
    fields += replyTextFieldIf(c, "module", spec->module);
    fields += replyDocFlags(c, cmd->flags);
    fields += replyTextFieldIf(c, "deprecated_since", spec->deprecated_since);
    fields += replyTextFieldIf(c, "replaced_by", spec->replaced_by);
    fields += replyHistory(c, spec);
    if (spec->arg_count > 0) {
        replyBulkText(c, "arguments");
        replyArgs(c, spec->args, spec->arg_count);
        fields++;
    }
    if (cmd->sub_count > 0) {
        replyBulkText(c, "subcommands");
        replyMap(c, cmd->sub_count);
        for (int i = 0; i < cmd->sub_count; i++) replyDocs(c, &cmd->subs[i]);
        fields++;
    }
    respDeferEnd(c->out, map, '%', c->proto, fields);
}

static void docsOfEach(const command *cmd, void *arg) { replyDocs(arg, cmd); }

/* COMMAND DOCS [name ...]. Reply: a map from name to documentation; unknown names are omitted. */
void commandDocsCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    if (c->argc == 2) {
        replyMap(c, commandCount());
        commandEach(docsOfEach, c);
        return;
    }
    respDeferred map = respDeferBegin(c->out);
    int found = 0;
    for (int i = 2; i < c->argc; i++) {
        const command *cmd = commandFindByFullName(c->argv[i]);
        if (!cmd) continue;
        replyDocs(c, cmd);
        found++;
    }
    respDeferEnd(c->out, map, '%', c->proto, found);
}

/* ---- COMMAND LIST */

typedef struct listFilter {
    ctx *c;
    enum { LIST_ALL, LIST_MODULE, LIST_CATEGORY, LIST_PATTERN } kind;
    slice word;
    int64_t found;
} listFilter;

static bool listHasCategory(const command *cmd, slice category) {
    int bit = commandCategoryFind(category);
    return bit >= 0 && cmd->spec->categories >> bit & 1;
}

static bool listWants(const listFilter *filter, const command *cmd) {
    switch (filter->kind) {
    case LIST_ALL: return true;
    case LIST_MODULE: return cmd->spec->module && sliceIs(filter->word, cmd->spec->module);
    case LIST_CATEGORY: return listHasCategory(cmd, filter->word);
    case LIST_PATTERN: return globMatchFold(filter->word, cmd->name);
    }
    return false;
}

/* One command or subcommand; each is filtered separately. */
static void listOne(const command *cmd, void *arg) {
    listFilter *filter = arg;
    if (listWants(filter, cmd)) {
        replyBulk(filter->c, cmd->name);
        filter->found++;
    }
    for (int i = 0; i < cmd->sub_count; i++) listOne(&cmd->subs[i], filter);
}

/* COMMAND LIST [FILTERBY MODULE name|ACLCAT category|PATTERN pattern]. Reply: names, including
 * subcommands. */
void commandListCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    listFilter filter = {.c = c, .kind = LIST_ALL};
    if (c->argc != 2) {
        if (c->argc != 5 || !ctxArgIs(c, 2, "filterby")) {
            replyError(c, ERR_SYNTAX_TEXT);
            return;
        }
        if (ctxArgIs(c, 3, "module")) {
            filter.kind = LIST_MODULE;
        } else if (ctxArgIs(c, 3, "aclcat")) {
            filter.kind = LIST_CATEGORY;
        } else if (ctxArgIs(c, 3, "pattern")) {
            filter.kind = LIST_PATTERN;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return;
        }
        filter.word = c->argv[4];
    }
    respDeferred list = respDeferBegin(c->out);
    commandEach(listOne, &filter);
    respDeferEnd(c->out, list, '*', c->proto, filter.found);
}

/* ---- COMMAND GETKEYS, GETKEYSANDFLAGS */

/* The command given by arguments 2 and following. NULL: the error was replied. */
static const command *findNamedCommand(ctx *c) {
    bool unknown_sub;
    const command *cmd = commandResolve(c->argv + 2, c->argc - 2, &unknown_sub);
    int argc = c->argc - 2;
    if (!cmd || unknown_sub) {
        replyError(c, SLICE("ERR Invalid command specified"));
    } else if (!commandSpecHasKeys(cmd->spec)) {
        replyError(c, SLICE("ERR The command has no key arguments"));
    } else if (cmd->arity > 0 ? argc != cmd->arity : argc < -cmd->arity) {
        replyError(c, SLICE("ERR Invalid number of arguments specified for command"));
    } else {
        return cmd;
    }
    return NULL;
}

static void replyKeys(ctx *c, const keyPosition *keys, int count, bool with_flags) {
    hotCheck(count >= 0);
    hotCheck(c->argc > 2);
    const slice *argv = c->argv + 2;
    replyArray(c, count);
    for (int i = 0; i < count; i++) {
        if (with_flags) replyArray(c, 2);
        replyBulk(c, argv[keys[i].arg_index]);
        if (with_flags) replyKeyFlags(c, keys[i].flags);
    }
}

static void getKeys(ctx *c, bool with_flags) {
    const command *cmd = findNamedCommand(c);
    if (!cmd) return;
    keyPosition few[64];
    int count;
    keyPosition *keys = commandAllKeys(cmd, c->argv + 2, c->argc - 2, few, COUNT_OF(few), &count);
    if (count < 0 || (count == 0 && !(cmd->flags & CMD_NO_MANDATORY_KEYS))) {
        replyError(c, SLICE("ERR Invalid arguments specified for command"));
        return;
    }
    replyKeys(c, keys, count, with_flags);
    if (keys != few) memFree(keys);
}

/* COMMAND GETKEYS command [argument ...]. Reply: the keys among the arguments. */
void commandGetkeysCommand(ctx *c) { getKeys(c, false); }

/* COMMAND GETKEYSANDFLAGS command [argument ...]. Reply: pairs of a key and its access flags. */
void commandGetkeysandflagsCommand(ctx *c) { getKeys(c, true); }

/* COMMAND HELP. */
void commandHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "(no subcommand)",
        "    Return details about all commands.",
        "COUNT",
        "    Return the total number of commands in this server.",
        "LIST",
        "    Return a list of all commands in this server.",
        "INFO [<command-name> ...]",
        "    Return details about multiple commands.",
        "    If no command names are given, documentation details for all",
        "    commands are returned.",
        "DOCS [<command-name> ...]",
        "    Return documentation details about multiple commands.",
        "    If no command names are given, documentation details for all",
        "    commands are returned.",
        "GETKEYS <full-command>",
        "    Return the keys from a full command.",
        "GETKEYSANDFLAGS <full-command>",
        "    Return the keys and the access flags from a full command.",
        NULL,
    };
    replyHelp(c, lines);
}
