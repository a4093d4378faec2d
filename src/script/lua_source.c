/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Source text before it is compiled. LuaJIT differs from Lua 5.1 in ways that would be visible:
 * - "return f(x)" drops the caller's frame also if f is a function in C, so an error in f has no line. Calls of known
 *   functions in C become "return (f(x))", or "return select(1, f(x))" if they may return several values: then f is not
 *   called in the place of the caller.
 * - Functions with "..." have no table `arg`: those that mention it get a local variable.
 * - It has literals of later versions (5LL, 1i, 0b1), goto and labels; they are refused. Escapes of later versions and
 *   unknown ones ("\x41", "\q") stand for their letter, as in Lua 5.1.
 * Lines are not changed. Cost: one pass over the tokens. */
#include <string.h>

#include "base/base.h"
#include "base/bytes.h"
#include "script/lua_priv.h"

typedef struct scanner {
    const char *at, *end;
    int line;
    slice token;
    enum { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_OTHER } kind;
} scanner;

static bool isWordStart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

static char peek(const scanner *s, size_t ahead) {
    return (size_t)(s->end - s->at) > ahead ? s->at[ahead] : 0;
}

static void skip(scanner *s) {
    if (*s->at == '\n') s->line++;
    s->at++;
}

/* At "[[" or "[==[": skips to the end of the long string. False: there is none here. */
static bool skipLong(scanner *s) {
    size_t level = 0;
    while (peek(s, 1 + level) == '=') level++;
    if (peek(s, 1 + level) != '[') return false;
    for (size_t i = 0; i < level + 2; i++) skip(s);
    while (s->at < s->end) {
        size_t match = 0;
        if (*s->at == ']') {
            while (peek(s, 1 + match) == '=') match++;
            if (match == level && peek(s, 1 + match) == ']') {
                s->at += level + 2;
                return true;
            }
        }
        skip(s);
    }
    return true;
}

static void skipQuoted(scanner *s) {
    char quote = *s->at;
    skip(s);
    while (s->at < s->end && *s->at != quote && *s->at != '\n') {
        if (*s->at == '\\' && s->at + 1 < s->end) skip(s);
        skip(s);
    }
    if (s->at < s->end && *s->at == quote) s->at++;
}

/* Skips blanks and comments. */
static void skipSpace(scanner *s) {
    while (s->at < s->end) {
        char c = *s->at;
        if (c == '-' && peek(s, 1) == '-') {
            s->at += 2;
            if (s->at < s->end && *s->at == '[' && skipLong(s)) continue;
            while (s->at < s->end && *s->at != '\n') s->at++;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            skip(s);
        } else {
            return;
        }
    }
}

static void next(scanner *s) {
    skipSpace(s);
    const char *from = s->at;
    if (s->at == s->end) {
        s->kind = TOKEN_END;
    } else if (isWordStart(*s->at)) {
        s->kind = TOKEN_WORD;
        while (s->at < s->end && (isWordStart(*s->at) || isDigit(*s->at))) s->at++;
    } else if (isDigit(*s->at) || (*s->at == '.' && isDigit(peek(s, 1)))) {
        s->kind = TOKEN_NUMBER;
        while (s->at < s->end) {
            char last = (char)byteFold(*s->at);
            if (!isWordStart(*s->at) && !isDigit(*s->at) && *s->at != '.') break;
            s->at++;
            bool exponent = last == 'e' && (char)byteFold(from[1]) != 'x';
            if (exponent && s->at < s->end && (*s->at == '-' || *s->at == '+')) s->at++;
        }
    } else if (*s->at == '"' || *s->at == '\'') {
        s->kind = TOKEN_STRING;
        skipQuoted(s);
    } else if (*s->at == '[' && skipLong(s)) {
        s->kind = TOKEN_STRING;
    } else {
        s->kind = TOKEN_OTHER;
        bool repeats = *s->at == '.' || *s->at == ':';
        do { s->at++; } while (repeats && peek(s, 0) == *from && s->at - from < 3);
    }
    s->token = sliceMake(from, (size_t)(s->at - from));
}

static bool is(const scanner *s, const char *text) {
    return sliceEqual(s->token, sliceOf(text)) && s->kind != TOKEN_STRING;
}

static bool isAny(const scanner *s, const char *const *words) {
    for (; *words; words++) {
        if (is(s, *words)) return true;
    }
    return false;
}

/* At "(": moves after the matching one; false if there is none. */
static bool skipParentheses(scanner *s) {
    int depth = 0;
    for (; s->kind != TOKEN_END; next(s)) {
        if (is(s, "(")) depth++;
        if (is(s, ")") && --depth == 0) {
            next(s);
            return true;
        }
    }
    return false;
}

/* True if the scanner is where a block ends. */
static bool atBlockEnd(const scanner *s) {
    static const char *const ends[] = {"end", "else", "elseif", "until", ";", NULL};
    return s->kind == TOKEN_END || isAny(s, ends);
}

/* A change of the source: `removed` bytes at `at` are replaced by `text`. */
typedef struct edit {
    const char *at, *text;
    int removed;
} edit;

typedef struct edits {
    edit *list;
    size_t count, cap;
} edits;

static void add(edits *all, const char *at, const char *text, int removed) {
    if (all->count == all->cap) {
        all->cap = all->cap ? all->cap * 2 : 16;
        all->list = memRealloc(all->list, all->cap * sizeof(*all->list));
    }
    all->list[all->count++] = (edit){at, text, removed};
}

static int compareEdits(const void *a, const void *b) {
    const edit *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return 0;
}

/* ------------------------------------------------------------------ return f(x) */

/* Names that the source has given to functions of the server and to tables with such functions. */
enum { ALIASES_MAX = 16 };
typedef struct aliases {
    slice functions[ALIASES_MAX], tables[ALIASES_MAX];
    int function_count, table_count;
    bool hides_select; /* `select` may be something else in this source */
} aliases;

static bool isListed(const scanner *s, const slice *names, int count) {
    for (int i = 0; i < count; i++) {
        if (s->kind == TOKEN_WORD && sliceEqual(s->token, names[i])) return true;
    }
    return false;
}

static bool isTable(const scanner *s, const aliases *known) {
    static const char *const tables[] = {"redis",  "server", "cjson",     "struct",
                                         "bit",    "math",   "cmsgpack",  "os",
                                         "string", "table",  "coroutine", NULL};
    if (s->kind != TOKEN_WORD) return false;
    return isAny(s, tables) || isListed(s, known->tables, known->table_count);
}

/* The scanner is at "=", after `name`. */
static void noteAlias(const scanner *at, slice name, aliases *known) {
    scanner s = *at;
    next(&s);
    if (!isTable(&s, known)) return;
    next(&s);
    bool is_table = true, is_new = false;
    if (is(&s, ".")) {
        next(&s);
        is_new = is(&s, "new");
        is_table = false;
        next(&s);
    }
    if (is(&s, ".") || is(&s, ":") || (is(&s, "(") && !is_new)) return;
    if (is_table || is_new) {
        if (known->table_count < ALIASES_MAX) known->tables[known->table_count++] = name;
    } else {
        if (known->function_count < ALIASES_MAX) known->functions[known->function_count++] = name;
    }
}

typedef enum callKind { CALL_OTHER, CALL_ONE, CALL_SEVERAL } callKind;

/* At what follows "return": whether it is a call of a function that is probably written in C, and if it returns at most
 * one value. Moves to its "(". */
static callKind scanCall(scanner *s, const aliases *known) {
    static const char *const one[] = {"collectgarbage", "error",  "tonumber", "tostring",
                                      "type",           "rawget", "rawequal", "getmetatable",
                                      "setmetatable",   "rawset", "getfenv",  "setfenv",
                                      "newproxy",       "gcinfo", NULL};
    static const char *const some[] = {"select", "unpack",     "assert", "next", "load",
                                       "pairs",  "loadstring", "ipairs", NULL};
    static const char *const some_of_tables[] = {"unpack",
                                                 "frexp",
                                                 "modf",
                                                 "byte",
                                                 "find",
                                                 "match",
                                                 "gsub",
                                                 "resume",
                                                 "yield",
                                                 "running",
                                                 "wrap",
                                                 "foreach",
                                                 "foreachi",
                                                 "unpack_one",
                                                 "unpack_limit",
                                                 "new",
                                                 "encode_sparse_array",
                                                 NULL};
    static const char *const methods[] = {"byte", "find",  "format", "gmatch",  "gsub",
                                          "len",  "lower", "match",  "reverse", "rep",
                                          "sub",  "upper", "dump",   NULL};
    callKind kind = CALL_OTHER;
    if (is(s, "(")) {
        if (!skipParentheses(s) || !is(s, ":")) return CALL_OTHER;
    } else if (s->kind != TOKEN_WORD) {
        return CALL_OTHER;
    } else if (isAny(s, one)) {
        kind = CALL_ONE;
        next(s);
    } else if (isAny(s, some) || isListed(s, known->functions, known->function_count)) {
        kind = CALL_SEVERAL;
        next(s);
    } else {
        bool is_table = isTable(s, known);
        next(s);
        if (is_table && is(s, ".")) {
            next(s);
            kind = isAny(s, some_of_tables) ? CALL_SEVERAL : CALL_ONE;
            next(s);
        }
    }
    if (kind == CALL_OTHER && is(s, ":")) {
        next(s);
        if (!isAny(s, methods)) return CALL_OTHER;
        kind = CALL_SEVERAL; /* it may be an object of the script */
        next(s);
    }
    return is(s, "(") ? kind : CALL_OTHER;
}

/* The scanner is after "return": changes what follows if it is such a call. */
static void wrapCall(const scanner *after_return, const aliases *known, edits *all) {
    scanner s = *after_return;
    next(&s);
    const char *from = s.token.ptr;
    callKind kind = scanCall(&s, known);
    if (kind == CALL_OTHER || (kind == CALL_SEVERAL && known->hides_select)) return;
    /* The end of the last token before `to` is where its parenthesis is. */
    scanner closing = s;
    if (!skipParentheses(&s) || !atBlockEnd(&s)) return;
    const char *to = NULL;
    for (int depth = 0; !to; next(&closing)) {
        if (is(&closing, "(")) depth++;
        if (is(&closing, ")") && --depth == 0) to = closing.at;
    }
    add(all, from, kind == CALL_ONE ? "(" : "select(1, ", 0);
    add(all, to, ")", 0);
}

/* ------------------------------------------------------------------ functions with "..." */

/* A function that is open. A table `arg` exists in those with "..." in their parameters but not in their bodies; in
 * those that have it in both, `arg` is nil. */
typedef struct openFunction {
    const char *body; /* after its parameters */
    int depth;        /* of blocks */
    bool takes_any, uses_dots, mentions_arg;
} openFunction;

enum { FUNCTIONS_MAX = 200 }; /* the interpreter refuses a source that nests them deeper */

typedef struct functionStack {
    openFunction list[FUNCTIONS_MAX];
    int count, depth;
} functionStack;

/* After "function": moves after its parameters. */
static void openFunctionAt(scanner *s, functionStack *stack) {
    next(s);
    while (s->kind == TOKEN_WORD || is(s, ".") || is(s, ":")) next(s);
    openFunction f = {.depth = stack->depth++};
    if (!is(s, "(")) return; /* an error that the interpreter will find */
    while (s->kind != TOKEN_END && !is(s, ")")) {
        next(s);
        if (is(s, "...")) f.takes_any = true;
    }
    f.body = s->at;
    if (stack->count < FUNCTIONS_MAX) stack->list[stack->count] = f;
    stack->count++;
}

static void closeFunction(functionStack *stack, edits *all) {
    if (stack->count-- > FUNCTIONS_MAX) return;
    const openFunction *f = &stack->list[stack->count];
    if (f->mentions_arg && stack->count) stack->list[stack->count - 1].mentions_arg = true;
    if (!f->mentions_arg || !f->takes_any) return;
    add(all, f->body, f->uses_dots ? " local arg " : " local arg = {n = select('#', ...), ...} ",
        0);
}

/* Follows blocks and functions; the scanner may be moved to the end of parameters. */
static void followBlocks(scanner *s, functionStack *stack, edits *all) {
    static const char *const openers[] = {"do", "if", "repeat", NULL};
    static const char *const closers[] = {"end", "until", NULL};
    openFunction *f =
        stack->count && stack->count <= FUNCTIONS_MAX ? &stack->list[stack->count - 1] : NULL;
    if (is(s, "function")) {
        openFunctionAt(s, stack);
    } else if (s->kind == TOKEN_WORD && isAny(s, openers)) {
        stack->depth++;
    } else if (s->kind == TOKEN_WORD && isAny(s, closers)) {
        stack->depth--;
        if (f && stack->depth == f->depth) closeFunction(stack, all);
    } else if (f && is(s, "...")) {
        f->uses_dots = true;
    } else if (f && is(s, "arg")) {
        f->mentions_arg = true;
    }
}

/* ------------------------------------------------------------------ what Lua 5.1 does not have */

static bool isForeignNumber(slice token) {
    char last = (char)byteFold(token.ptr[token.len - 1]);
    bool is_binary = token.len > 1 && token.ptr[0] == '0' && byteFold(token.ptr[1]) == 'b';
    return is_binary || last == 'i' || last == 'l' || last == 'u';
}

/* True if a statement may begin after the token, so that "goto" is not a name there. */
static bool endsStatement(slice before, int kind) {
    static const char *const others[] = {")", "]", "}", ";"};
    static const char *const words[] = {"and", "or",    "not", "return", "local", "function",
                                        "for", "while", "if",  "elseif", "in",    "until"};
    if (kind == TOKEN_END || kind == TOKEN_NUMBER || kind == TOKEN_STRING) return true;
    const char *const *list = kind == TOKEN_WORD ? words : others;
    size_t count = kind == TOKEN_WORD ? COUNT_OF(words) : COUNT_OF(others);
    bool listed = false;
    for (size_t i = 0; i < count; i++) listed = listed || sliceEqual(before, sliceOf(list[i]));
    return kind == TOKEN_WORD ? !listed : listed;
}

/* Removes the backslash of escapes that are none. False: the number of one is too large; *at is where. */
static bool editEscapes(slice token, edits *all, size_t *at) {
    static const char known[] = "abfnrtv\\\"'\n\r";
    for (size_t i = 1; i + 1 < token.len; i++) {
        if (token.ptr[i] != '\\') continue;
        *at = i++;
        if (isDigit(token.ptr[i])) {
            int value = 0, digits = 0;
            for (; digits < 3 && isDigit(token.ptr[i + (size_t)digits]); digits++)
                value = value * 10 + (token.ptr[i + (size_t)digits] - '0');
            if (value > 255) return false;
        } else if (!token.ptr[i] || !strchr(known, token.ptr[i])) {
            add(all, token.ptr + *at, "", 1);
        }
    }
    return true;
}

/* Appends the error if the token does not exist in Lua 5.1. */
static bool refuseForeign(const scanner *s, slice before, int kind_before, edits *all,
                          const char *name, str *error) {
    size_t at = 0;
    if (s->kind == TOKEN_NUMBER && isForeignNumber(s->token)) {
        strAppendFormat(error, "%s:%d: malformed number near '%.*s'", name, s->line,
                        (int)sizeMin(s->token.len, 40), s->token.ptr);
    } else if (is(s, "::")) {
        strAppendFormat(error, "%s:%d: unexpected symbol near ':'", name, s->line);
    } else if (is(s, "goto") && endsStatement(before, kind_before)) {
        scanner after = *s;
        next(&after);
        if (after.kind != TOKEN_WORD) return false;
        strAppendFormat(error, "%s:%d: '=' expected near '%.*s'", name, s->line,
                        (int)sizeMin(after.token.len, 40), after.token.ptr);
    } else if (s->kind == TOKEN_STRING && *s->token.ptr != '[' &&
               !editEscapes(s->token, all, &at)) {
        strAppendFormat(error, "%s:%d: escape sequence too large near '%.*s'", name, s->line,
                        (int)sizeMin(at, 40), s->token.ptr);
    } else {
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------ */

static void appendWith(str *out, slice code, edits *all) {
    if (all->count) qsort(all->list, all->count, sizeof(*all->list), compareEdits);
    const char *from = code.ptr;
    for (size_t i = 0; i < all->count; i++) {
        strAppend(out, from, (size_t)(all->list[i].at - from));
        strAppendText(out, all->list[i].text);
        from = all->list[i].at + all->list[i].removed;
    }
    strAppend(out, from, (size_t)(code.ptr + code.len - from));
}

bool luaSourcePrepare(slice code, const char *name, str *out, str *error) {
    if (!name) name = "[string]";
    if (code.len && code.ptr[0] == '\033') {
        strAppendFormat(error, "%s:1: unexpected symbol near 'char(27)'", name);
        return false;
    }
    scanner s = {.at = code.ptr, .end = code.ptr + code.len, .line = 1};
    edits all = {NULL, 0, 0};
    functionStack stack;
    stack.count = stack.depth = 0;
    bool valid = true;
    slice before = {"", 0};
    int kind_before = TOKEN_END;
    aliases known = {.function_count = 0};
    for (next(&s); s.kind != TOKEN_END && valid; next(&s)) {
        if (is(&s, "return")) wrapCall(&s, &known, &all);
        if (is(&s, "=") && kind_before == TOKEN_WORD) noteAlias(&s, before, &known);
        if (sliceEqual(before, SLICE("select")) && !is(&s, "(")) known.hides_select = true;
        valid = !refuseForeign(&s, before, kind_before, &all, name, error);
        if (valid) followBlocks(&s, &stack, &all);
        before = s.token;
        kind_before = s.kind;
    }
    strReserve(out, 1);
    if (valid) appendWith(out, code, &all);
    memFree(all.list);
    return valid;
}
