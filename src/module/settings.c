/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings of modules. A setting is a row of the configuration, whose text is made of what the
 * module's function returns, and parsed before the module's function gets it. */
#include "module/settings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "config/config.h"
#include "module/context.h"
#include "module/generated/api.h"

typedef enum settingKind {
    SETTING_STRING,
    SETTING_BOOL,
    SETTING_ENUM,
    SETTING_NUMBER,
    SETTING_UNSIGNED,
} settingKind;

/* The functions of a setting; which ones are in use follows from its kind. */
typedef union settingGet {
    ValkeyModuleConfigGetStringFunc text;
    ValkeyModuleConfigGetBoolFunc flag; /* of enums, too */
    ValkeyModuleConfigGetNumericFunc number;
    ValkeyModuleConfigGetUnsignedNumericFunc unsigned_number;
} settingGet;
typedef union settingSet {
    ValkeyModuleConfigSetStringFunc text;
    ValkeyModuleConfigSetBoolFunc flag;
    ValkeyModuleConfigSetNumericFunc number;
    ValkeyModuleConfigSetUnsignedNumericFunc unsigned_number;
} settingSet;

typedef struct setting setting;
struct setting {
    configOption rows[2]; /* first: a table of one row */
    module *owner;
    char *name; /* without the module's */
    settingKind kind;
    unsigned flags; /* VALKEYMODULE_CONFIG_ */
    settingGet get;
    settingSet set;
    ValkeyModuleConfigApplyFunc apply;
    void *private;
    str standard; /* the default, as text */
    int64_t min, max;
    uint64_t unsigned_min, unsigned_max;
    char **words; /* of enums */
    int *values;
    int word_count;
    bool is_listed;        /* the configuration has it */
    setting *next;         /* in the order of registration */
    setting *next_changed; /* in the order of CONFIG SET */
};

static setting *settings;

/* Those whose apply() is to be called at the end of a CONFIG SET. */
static struct {
    uint64_t set_number; /* of configSetNumber(): those of an earlier one were refused */
    setting *first;
} changed;

/* ------------------------------------------------------------------ values as text */

static const setting *settingOf(const configOption *o) { return (const setting *)o; }

static void printWord(const setting *s, int i, size_t start, str *out) {
    hotCheck(i < s->word_count);
    if (out->len > start) strAppendByte(out, ' ');
    strAppendText(out, s->words[i]);
}

/* The word of exactly this value; of bits else the words, in their order, none of whose bits was
 * printed by an earlier one. */
static void printWords(const setting *s, int value, str *out) {
    hotCheck(s->kind == SETTING_ENUM);
    size_t start = out->len;
    for (int i = 0; i < s->word_count; i++) {
        if (s->values[i] != value) continue;
        printWord(s, i, start, out);
        return;
    }
    if (!(s->flags & VALKEYMODULE_CONFIG_BITFLAGS)) return;
    for (int i = 0, left = value; i < s->word_count; i++) {
        int bits = s->values[i];
        if (!bits || (left & bits) != bits) continue;
        printWord(s, i, start, out);
        left &= ~bits;
    }
}

static void printValue(const setting *s, str *out) {
    hotCheck(s->owner);
    hotCheck(s->name);
    switch (s->kind) {
    case SETTING_STRING: {
        ValkeyModuleString *text = s->get.text(s->name, s->private);
        if (text) strAppendSlice(out, moduleStringSlice(text));
        return;
    }
    case SETTING_BOOL: strAppendText(out, s->get.flag(s->name, s->private) ? "yes" : "no"); return;
    case SETTING_ENUM: printWords(s, s->get.flag(s->name, s->private), out); return;
    case SETTING_NUMBER: strAppendInt(out, s->get.number(s->name, s->private)); return;
    case SETTING_UNSIGNED:
        strAppendFormat(out, "%llu", s->get.unsigned_number(s->name, s->private));
        return;
    }
}

/* ------------------------------------------------------------------ parsing */

/* A parsed value. */
typedef struct settingValue {
    slice text;
    int flag;
    int64_t number;
    uint64_t unsigned_number;
} settingValue;

static status refuseWords(const setting *s, reason *why) {
    hotCheck(s->kind == SETTING_ENUM);
    str list = STR_EMPTY;
    for (int i = 0; i < s->word_count; i++)
        strAppendFormat(&list, "%s%s", i ? ", " : "", s->words[i]);
    status st =
        reasonSet(why, ERR_SYNTAX, "argument(s) must be one of the following: %s", strText(&list));
    strFree(&list);
    return st;
}

/* The value of one word; false: there is none of the name. */
static bool wordValue(const setting *s, slice word, int *value) {
    hotCheck(s->words);
    for (int i = 0; i < s->word_count; i++) {
        if (!sliceIs(word, s->words[i])) continue;
        *value = s->values[i];
        return true;
    }
    return false;
}

static status parseWords(const setting *s, slice text, int *out, reason *why) {
    hotCheck(s->kind == SETTING_ENUM);
    if (!(s->flags & VALKEYMODULE_CONFIG_BITFLAGS))
        return wordValue(s, text, out) ? OK : refuseWords(s, why);
    int bits = 0, value;
    while (text.len) {
        const char *blank = memchr(text.ptr, ' ', text.len);
        size_t len = blank ? (size_t)(blank - text.ptr) : text.len;
        if (!wordValue(s, sliceMake(text.ptr, len), &value)) return refuseWords(s, why);
        bits |= value;
        text = blank ? sliceMake(blank + 1, text.len - len - 1) : SLICE("");
    }
    *out = bits;
    return OK;
}

static status parseNumber(const setting *s, slice text, int64_t *out, reason *why) {
    hotCheck(s->kind == SETTING_NUMBER);
    uint64_t bytes;
    bool is_memory = s->flags & VALKEYMODULE_CONFIG_MEMORY;
    if (is_memory && numberParseMemory(text, &bytes) && text.len && bytes <= INT64_MAX) {
        *out = (int64_t)bytes;
    } else if (is_memory) {
        return reasonSet(why, ERR_SYNTAX, "argument must be a memory value");
    } else if (!numberParseInt(text, out)) {
        return reasonSet(why, ERR_SYNTAX, "argument couldn't be parsed into an integer");
    }
    if (*out >= s->min && *out <= s->max) return OK;
    return reasonSet(why, ERR_RANGE, "argument must be between %lld and %lld inclusive",
                     (long long)s->min, (long long)s->max);
}

static status parseUnsigned(const setting *s, slice text, uint64_t *out, reason *why) {
    hotCheck(s->kind == SETTING_UNSIGNED);
    bool is_memory = s->flags & VALKEYMODULE_CONFIG_MEMORY;
    bool valid = is_memory ? text.len && numberParseMemory(text, out) : numberParseUint(text, out);
    if (!valid)
        return reasonSet(why, ERR_SYNTAX,
                         is_memory ? "argument must be a memory value"
                                   : "argument couldn't be parsed as an unsigned number");
    if (*out >= s->unsigned_min && *out <= s->unsigned_max) return OK;
    return reasonSet(why, ERR_RANGE, "argument must be between %llu and %llu inclusive",
                     (unsigned long long)s->unsigned_min, (unsigned long long)s->unsigned_max);
}

static status parse(const setting *s, slice text, settingValue *out, reason *why) {
    *out = (settingValue){.text = text};
    switch (s->kind) {
    case SETTING_STRING: return OK;
    case SETTING_BOOL:
        out->flag = sliceIs(text, "yes");
        if (out->flag || sliceIs(text, "no")) return OK;
        return reasonSet(why, ERR_SYNTAX, "argument must be 'yes' or 'no'");
    case SETTING_ENUM: return parseWords(s, text, &out->flag, why);
    case SETTING_NUMBER: return parseNumber(s, text, &out->number, why);
    case SETTING_UNSIGNED: return parseUnsigned(s, text, &out->unsigned_number, why);
    }
    return ERR_SYNTAX;
}

/* ------------------------------------------------------------------ setting */

enum { ERROR_SHOWN_MAX = 255 };

/* Gives the value to the module; it may refuse it with a text. */
static status give(const setting *s, const settingValue *v, reason *why) {
    hotCheck(threadIsMain());
    ValkeyModuleString *error = NULL;
    int result = VALKEYMODULE_ERR;
    if (s->kind == SETTING_STRING) {
        ValkeyModuleString *text = moduleStringNew(v->text);
        result = s->set.text(s->name, text, s->private, &error);
        moduleStringRelease(text);
    } else if (s->kind == SETTING_NUMBER) {
        result = s->set.number(s->name, v->number, s->private, &error);
    } else if (s->kind == SETTING_UNSIGNED) {
        result = s->set.unsigned_number(s->name, v->unsigned_number, s->private, &error);
    } else {
        result = s->set.flag(s->name, v->flag, s->private, &error);
    }
    slice text = error ? moduleStringSlice(error) : SLICE("the module refuses the value");
    status st = OK;
    if (result != VALKEYMODULE_OK)
        st = reasonSet(why, ERR_DENIED, "%.*s", (int)sizeMin(text.len, ERROR_SHOWN_MAX), text.ptr);
    if (error) moduleStringRelease(error);
    return st;
}

/* The module's function need not be called for the value that there is. */
static bool isValueNow(const setting *s, slice text) {
    hotCheck(threadIsMain());
    str now = STR_EMPTY;
    printValue(s, &now);
    bool is = s->kind == SETTING_STRING ? sliceEqual(strSlice(&now), text)
                                        : sliceEqualFold(strSlice(&now), text);
    strFree(&now);
    return is;
}

static void noteChange(setting *s) {
    hotCheck(threadIsMain());
    if (changed.set_number != configSetNumber()) changed.first = NULL;
    changed.set_number = configSetNumber();
    setting **end = &changed.first;
    while (*end && *end != s) end = &(*end)->next_changed;
    if (*end) return;
    s->next_changed = NULL;
    *end = s;
}

static status setText(const configOption *o, slice text, reason *why) {
    hotCheck(settingOf(o)->is_listed);
    setting *s = (setting *)settingOf(o); /* the rows are this file's */
    settingValue v;
    status st = parse(s, text, &v, why);
    if (st != OK || isValueNow(s, text)) return st;
    st = give(s, &v, why);
    if (st == OK) noteChange(s);
    return st;
}

static void getText(const configOption *o, str *out) { printValue(settingOf(o), out); }

/* Nothing is written for a default. */
static bool rewriteText(const configOption *o, str *out) {
    hotCheck(settingOf(o)->is_listed);
    const setting *s = settingOf(o);
    str value = STR_EMPTY;
    printValue(s, &value);
    bool differs = !sliceEqual(strSlice(&value), strSlice(&s->standard));
    if (differs && s->kind == SETTING_STRING) {
        strAppendQuoted(out, strSlice(&value));
    } else if (differs && s->flags & VALKEYMODULE_CONFIG_MEMORY && value.ptr[0] != '-') {
        uint64_t bytes = 0;
        (void)numberParseUint(strSlice(&value), &bytes); /* digits were printed */
        configAppendMemory(out, bytes);
    } else if (differs) {
        strAppendSlice(out, strSlice(&value));
    }
    strFree(&value);
    return differs;
}

static const configSpecial special = {
    .set_of = setText, .get_of = getText, .rewrite_of = rewriteText};

typedef struct applyCall {
    const setting *of;
    ValkeyModuleString *error;
    int result;
} applyCall;

static void callApply(ValkeyModuleCtx *x, void *arg) {
    applyCall *call = arg;
    call->result = call->of->apply(x, call->of->private, &call->error);
}

static status applyOne(const setting *s, reason *why) {
    hotCheck(s->apply);
    applyCall call = {.of = s};
    contextRun(s->owner, 0, callApply, &call);
    slice text = call.error ? moduleStringSlice(call.error) : SLICE("it cannot be applied");
    status st = OK;
    if (call.result != VALKEYMODULE_OK) {
        configSetBlame(s->rows);
        st = reasonSet(why, ERR_DENIED, "%.*s", (int)sizeMin(text.len, ERROR_SHOWN_MAX), text.ptr);
    }
    if (call.error) moduleStringRelease(call.error);
    return st;
}

/* After CONFIG SET: once for each pair of a function and its data. */
static status applyChanged(reason *why) {
    hotCheck(threadIsMain());
    status st = OK;
    const setting *first = changed.first;
    changed.first = NULL;
    for (const setting *s = first; s && st == OK; s = s->next_changed) {
        const setting *same = first; /* a function that was called may change the list */
        while (same && (same->apply != s->apply || same->private != s->private))
            same = same->next_changed;
        if (s->apply && (!same || same == s)) st = applyOne(s, why);
    }
    return st;
}

/* ------------------------------------------------------------------ registration */

static setting *findSetting(const module *m, const char *name) {
    for (setting *s = settings; s; s = s->next) {
        if (s->owner == m && sliceIs(sliceOf(name), s->name)) return s;
    }
    return NULL;
}

static bool flagsAreValid(unsigned flags, settingKind kind) {
    const unsigned known = VALKEYMODULE_CONFIG_IMMUTABLE | VALKEYMODULE_CONFIG_SENSITIVE |
                           VALKEYMODULE_CONFIG_HIDDEN | VALKEYMODULE_CONFIG_PROTECTED |
                           VALKEYMODULE_CONFIG_DENY_LOADING | VALKEYMODULE_CONFIG_MEMORY |
                           VALKEYMODULE_CONFIG_BITFLAGS | VALKEYMODULE_CONFIG_UNSIGNED;
    bool is_number = kind == SETTING_NUMBER || kind == SETTING_UNSIGNED;
    const char *wrong = NULL;
    if (flags & ~known) wrong = "Invalid flag(s) for configuration";
    if (flags & (VALKEYMODULE_CONFIG_MEMORY | VALKEYMODULE_CONFIG_UNSIGNED) && !is_number)
        wrong = "Numeric flag provided for non-numeric configuration.";
    if (flags & VALKEYMODULE_CONFIG_BITFLAGS && kind != SETTING_ENUM)
        wrong = "Enum flag provided for non-enum configuration.";
    if (wrong) logWarning("%s", wrong);
    return !wrong;
}

static uint32_t rowFlags(unsigned flags) {
    return CONFIG_MULTI_WORD | (flags & VALKEYMODULE_CONFIG_IMMUTABLE ? CONFIG_IMMUTABLE : 0u) |
           (flags & VALKEYMODULE_CONFIG_SENSITIVE ? CONFIG_SENSITIVE : 0u) |
           (flags & VALKEYMODULE_CONFIG_HIDDEN ? CONFIG_HIDDEN : 0u) |
           (flags & VALKEYMODULE_CONFIG_PROTECTED ? CONFIG_PROTECTED : 0u) |
           (flags & VALKEYMODULE_CONFIG_DENY_LOADING ? CONFIG_NOT_WHILE_LOADING : 0u);
}

/* 0, or why a setting of this name cannot be registered: a value of errno. */
static int refusalOf(const ValkeyModuleCtx *x, const char *name, unsigned flags, settingKind kind) {
    if (!x->module || !x->module->loading) return EBUSY;
    if (!resourceNameIsValid(name) || !flagsAreValid(flags, kind)) return EINVAL;
    if (!findSetting(x->module, name)) return 0;
    logWarning("Configuration by the name: %s already registered", name);
    return EALREADY;
}

/* A new setting of the module; NULL: errno says why not. */
static setting *newSetting(ValkeyModuleCtx *x, const char *name, unsigned flags, settingKind kind,
                           ValkeyModuleConfigApplyFunc apply, void *private) {
    int refusal = refusalOf(x, name, flags, kind);
    if (refusal) {
        errno = refusal;
        return NULL;
    }
    setting *s = memNew(setting);
    s->owner = x->module;
    s->name = memDup(name, strlen(name));
    s->kind = kind;
    s->flags = flags;
    s->apply = apply;
    s->private = private;
    str full = STR_EMPTY;
    strAppendFormat(&full, "%s.%s", x->module->name, name);
    for (size_t i = 0; i < full.len; i++) full.ptr[i] = (char)tolower((unsigned char)full.ptr[i]);
    s->rows[0] = (configOption){.name = full.ptr,
                                .kind = CONFIG_KIND_SPECIAL,
                                .flags = rowFlags(flags),
                                .special = &special,
                                .apply = applyChanged};
    s->rows[1] = (configOption)CONFIG_END;
    setting **end = &settings;
    while (*end) end = &(*end)->next;
    *end = s;
    return s;
}

int apiRegisterStringConfig(ValkeyModuleCtx *ctx, const char *name, const char *default_val,
                            unsigned int flags, ValkeyModuleConfigGetStringFunc getfn,
                            ValkeyModuleConfigSetStringFunc setfn,
                            ValkeyModuleConfigApplyFunc applyfn, void *privdata) {
    setting *s = newSetting(ctx, name, flags, SETTING_STRING, applyfn, privdata);
    if (!s) return VALKEYMODULE_ERR;
    s->get.text = getfn;
    s->set.text = setfn;
    strAppendText(&s->standard, default_val ? default_val : "");
    return VALKEYMODULE_OK;
}

int apiRegisterBoolConfig(ValkeyModuleCtx *ctx, const char *name, int default_val,
                          unsigned int flags, ValkeyModuleConfigGetBoolFunc getfn,
                          ValkeyModuleConfigSetBoolFunc setfn, ValkeyModuleConfigApplyFunc applyfn,
                          void *privdata) {
    setting *s = newSetting(ctx, name, flags, SETTING_BOOL, applyfn, privdata);
    if (!s) return VALKEYMODULE_ERR;
    s->get.flag = getfn;
    s->set.flag = setfn;
    strAppendText(&s->standard, default_val ? "yes" : "no");
    return VALKEYMODULE_OK;
}

int apiRegisterEnumConfig(ValkeyModuleCtx *ctx, const char *name, int default_val,
                          unsigned int flags, const char **enum_values, const int *int_values,
                          int num_enum_vals, ValkeyModuleConfigGetEnumFunc getfn,
                          ValkeyModuleConfigSetEnumFunc setfn, ValkeyModuleConfigApplyFunc applyfn,
                          void *privdata) {
    setting *s = newSetting(ctx, name, flags, SETTING_ENUM, applyfn, privdata);
    if (!s) return VALKEYMODULE_ERR;
    s->get.flag = getfn;
    s->set.flag = setfn;
    s->word_count = num_enum_vals;
    s->words = memNewArray(char *, (size_t)num_enum_vals + 1);
    s->values = memNewArray(int, (size_t)num_enum_vals + 1);
    for (int i = 0; i < num_enum_vals; i++) {
        s->words[i] = memDup(enum_values[i], strlen(enum_values[i]));
        s->values[i] = int_values[i];
    }
    printWords(s, default_val, &s->standard);
    return VALKEYMODULE_OK;
}

int apiRegisterNumericConfig(ValkeyModuleCtx *ctx, const char *name, long long default_val,
                             unsigned int flags, long long min, long long max,
                             ValkeyModuleConfigGetNumericFunc getfn,
                             ValkeyModuleConfigSetNumericFunc setfn,
                             ValkeyModuleConfigApplyFunc applyfn, void *privdata) {
    setting *s = newSetting(ctx, name, flags, SETTING_NUMBER, applyfn, privdata);
    if (!s) return VALKEYMODULE_ERR;
    s->get.number = getfn;
    s->set.number = setfn;
    s->min = min;
    s->max = max;
    strAppendInt(&s->standard, default_val);
    return VALKEYMODULE_OK;
}

int apiRegisterUnsignedNumericConfig(ValkeyModuleCtx *ctx, const char *name,
                                     unsigned long long default_val, unsigned int flags,
                                     unsigned long long min, unsigned long long max,
                                     ValkeyModuleConfigGetUnsignedNumericFunc getfn,
                                     ValkeyModuleConfigSetUnsignedNumericFunc setfn,
                                     ValkeyModuleConfigApplyFunc applyfn, void *privdata) {
    setting *s = newSetting(ctx, name, flags, SETTING_UNSIGNED, applyfn, privdata);
    if (!s) return VALKEYMODULE_ERR;
    s->get.unsigned_number = getfn;
    s->set.unsigned_number = setfn;
    s->unsigned_min = min;
    s->unsigned_max = max;
    strAppendFormat(&s->standard, "%llu", default_val);
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ first values */

/* Of MODULE LOADEX, during the load. */
static struct {
    const slice *pairs;
    int count;
    bool *taken; /* by pair */
} queue;

void settingsQueue(const slice *pairs, int count) {
    hotCheck(count >= 0);
    hotCheck(!queue.taken);
    queue.pairs = pairs;
    queue.count = count;
    queue.taken = memNewArray(bool, (size_t)count + 1);
}

bool settingsQueueEnd(void) {
    hotCheck(queue.taken);
    bool all = true;
    for (int i = 0; i < queue.count; i++) all = all && queue.taken[i];
    memFree(queue.taken);
    queue.taken = NULL;
    queue.count = 0;
    return all;
}

/* The value that was given before the load, appended to `out`; false: none was. */
static bool takeQueued(const setting *s, str *out) {
    hotCheck(!s->is_listed);
    bool found = false;
    for (int i = 0; i < queue.count; i++) {
        if (!sliceIs(queue.pairs[2 * i], s->rows[0].name)) continue;
        queue.taken[i] = found = true;
        strClear(out);
        strAppendSlice(out, queue.pairs[2 * i + 1]);
    }
    return found || configTakeKept(sliceOf(s->rows[0].name), out);
}

int apiLoadConfigs(ValkeyModuleCtx *ctx) {
    if (!ctx->module || !ctx->module->loading) return VALKEYMODULE_ERR;
    for (setting *s = settings; s; s = s->next) {
        if (s->owner != ctx->module || s->is_listed) continue;
        str text = STR_EMPTY;
        bool is_given = takeQueued(s, &text);
        if (!is_given) strAppendSlice(&text, strSlice(&s->standard));
        reason why;
        settingValue v;
        status st = parse(s, strSlice(&text), &v, &why);
        /* A default may be negative, which a text for bytes may not. */
        if (!is_given && s->kind == SETTING_NUMBER && numberParseInt(strSlice(&text), &v.number))
            st = OK;
        if (st == OK) st = give(s, &v, &why);
        strFree(&text);
        if (st == OK && configAdd(s->rows) != OK)
            st = reasonSet(&why, ERR_EXISTS, "the name is in use");
        if (st != OK) {
            logWarning("Issue during loading of configuration %s : %s", s->rows[0].name, why.text);
            return VALKEYMODULE_ERR;
        }
        s->is_listed = true;
    }
    return VALKEYMODULE_OK;
}

bool settingsAreMissing(const module *m) {
    for (const setting *s = settings; s; s = s->next) {
        if (s->owner == m && !s->is_listed) return true;
    }
    return false;
}

static void freeSetting(setting *s) {
    hotCheck(s->rows[1].kind == CONFIG_KIND_END);
    if (s->is_listed) configRemove(s->rows);
    for (int i = 0; i < s->word_count; i++) memFree(s->words[i]);
    memFree(s->words);
    memFree(s->values);
    memFree((char *)s->rows[0].name);
    memFree(s->name);
    strFree(&s->standard);
    memFree(s);
}

void settingsRemove(module *m) {
    hotCheck(m);
    changed.first = NULL;
    for (setting **at = &settings; *at;) {
        setting *s = *at;
        if (s->owner != m) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        freeSetting(s);
    }
}
