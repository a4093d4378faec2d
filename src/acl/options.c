/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of users and passwords. `user` lines are stored as words; they are applied when all
 * commands are known. Main thread only. */
#include <limits.h>

#include "acl/acl_priv.h"
#include "acl/file.h"
#include "base/base.h"

aclConfig aclConf;

static const configWord pubsub_words[] = {
    {"allchannels", PUBSUB_ALLCHANNELS}, {"resetchannels", PUBSUB_RESETCHANNELS}, {NULL, 0}};

static void keepWords(aclUserLine *line, const slice *words, int count) {
    hotCheck(count > 0);
    line->words = memNewArray(str, (size_t)count);
    line->count = count;
    line->source = configLineSource();
    for (int i = 0; i < count; i++) line->words[i] = strNew(words[i]);
}

static aclUserLine *findLine(slice name) {
    for (int i = 0; i < aclConf.user_line_count; i++) {
        if (sliceEqual(strSlice(&aclConf.user_lines[i].words[0]), name))
            return &aclConf.user_lines[i];
    }
    return NULL;
}

/* A user has one line in the main file, in the files that it includes, and on the command line. The
 * latter of these applies: CONFIG REWRITE writes the users to the main file alone. */
static status takeUser(const slice *words, int count, reason *why) {
    if (aclUserLineCheck(words, count, why) != OK) return ERR_SYNTAX;
    configSource source = configLineSource();
    aclUserLine *line = findLine(words[0]);
    if (line &&
        (line->source == source || (line->is_included && source == CONFIG_IN_INCLUDED_FILE)))
        return reasonSet(
            why, ERR_EXISTS,
            "Error in user declaration '%.*s': Duplicate user found. A user can only be defined once "
            "in config files",
            (int)sizeMin(words[0].len, 64), words[0].ptr);
    if (!line) {
        aclConf.user_lines = memRealloc(
            aclConf.user_lines, sizeof(aclUserLine) * (size_t)(aclConf.user_line_count + 1));
        line = &aclConf.user_lines[aclConf.user_line_count++];
        *line = (aclUserLine){0};
        keepWords(line, words, count);
    } else if (source > line->source) {
        strFreeWords(line->words, line->count);
        keepWords(line, words, count);
    }
    line->is_included |= source == CONFIG_IN_INCLUDED_FILE;
    return OK;
}

static const configFileOnly user_lines = {.words_min = 1,
                                          .words_max = INT_MAX,
                                          .take = takeUser,
                                          .rewrite = aclUserLinesRewrite,
                                          .key_words = configKeyIsWord};

const configOption aclOptions[] = {
    CONFIG_STRING("requirepass", aclConf.requirepass, "", .flags = CONFIG_SENSITIVE,
                  .apply = aclApplyRequirepass),
    CONFIG_STRING("aclfile", aclConf.aclfile, "", .flags = CONFIG_IMMUTABLE),
    CONFIG_INT("acllog-max-len", aclConf.acllog_max_len, 128, 0, INT64_MAX),
    CONFIG_ENUM("acl-pubsub-default", aclConf.acl_pubsub_default, pubsub_words,
                PUBSUB_RESETCHANNELS),
    CONFIG_FILE_ONLY("user", &user_lines),
    CONFIG_END,
};
