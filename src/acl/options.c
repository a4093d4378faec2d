/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of users and passwords. `user` and `role` lines are stored as words; they are applied
 * when all commands are known. Main thread only. */
#include <limits.h>

#include "acl/acl_priv.h"
#include "acl/file.h"
#include "base/base.h"

aclConfig aclConf;

static const configWord pubsub_words[] = {
    {"allchannels", PUBSUB_ALLCHANNELS}, {"resetchannels", PUBSUB_RESETCHANNELS}, {NULL, 0}};

static void keepWords(aclLine *line, const slice *words, int count) {
    hotCheck(count > 0);
    line->words = memNewArray(str, (size_t)count);
    line->count = count;
    line->source = configLineSource();
    for (int i = 0; i < count; i++) line->words[i] = strNew(words[i]);
}

static aclLine *findLine(const aclLines *lines, slice name) {
    hotCheck(lines->count >= 0);
    for (int i = 0; i < lines->count; i++) {
        if (sliceEqual(strSlice(&lines->list[i].words[0]), name)) return &lines->list[i];
    }
    return NULL;
}

/* A user or role has one line in the main file, in the files that it includes, and on the command
 * line. The latter of these applies: CONFIG REWRITE writes the lines to the main file alone. */
static status takeLine(aclLines *lines, const char *kind, const slice *words, int count,
                       reason *why) {
    hotCheck(count > 0);
    configSource source = configLineSource();
    aclLine *line = findLine(lines, words[0]);
    if (line &&
        (line->source == source || (line->is_included && source == CONFIG_IN_INCLUDED_FILE)))
        return reasonSet(
            why, ERR_EXISTS,
            "Error in %s declaration '%.*s': Duplicate %s found. A %s can only be defined once "
            "in config files",
            kind, (int)sizeMin(words[0].len, 64), words[0].ptr, kind, kind);
    if (!line) {
        lines->list = memRealloc(lines->list, sizeof(aclLine) * (size_t)(lines->count + 1));
        line = &lines->list[lines->count++];
        *line = (aclLine){0};
        keepWords(line, words, count);
    } else if (source > line->source) {
        strFreeWords(line->words, line->count);
        keepWords(line, words, count);
    }
    line->is_included |= source == CONFIG_IN_INCLUDED_FILE;
    return OK;
}

static status takeUser(const slice *words, int count, reason *why) {
    if (aclUserLineCheck(words, count, why) != OK) return ERR_SYNTAX;
    return takeLine(&aclConf.user_lines, "user", words, count, why);
}

static status takeRole(const slice *words, int count, reason *why) {
    if (aclRoleLineCheck(words, count, why) != OK) return ERR_SYNTAX;
    return takeLine(&aclConf.role_lines, "role", words, count, why);
}

static const configFileOnly user_lines = {.words_min = 1,
                                          .words_max = INT_MAX,
                                          .take = takeUser,
                                          .rewrite = aclUserLinesRewrite,
                                          .key_words = configKeyIsWord};

static const configFileOnly role_lines = {.words_min = 1,
                                          .words_max = INT_MAX,
                                          .take = takeRole,
                                          .rewrite = aclRoleLinesRewrite,
                                          .key_words = configKeyIsWord};

const configOption aclOptions[] = {
    CONFIG_STRING("requirepass", aclConf.requirepass, "", .flags = CONFIG_SENSITIVE,
                  .apply = aclApplyRequirepass),
    CONFIG_STRING("aclfile", aclConf.aclfile, "", .flags = CONFIG_IMMUTABLE),
    CONFIG_INT("acllog-max-len", aclConf.acllog_max_len, 128, 0, INT64_MAX),
    CONFIG_ENUM("acl-pubsub-default", aclConf.acl_pubsub_default, pubsub_words,
                PUBSUB_RESETCHANNELS),
    CONFIG_FILE_ONLY("user", &user_lines),
    CONFIG_FILE_ONLY("role", &role_lines),
    CONFIG_END,
};
