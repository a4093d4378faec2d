/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --compression-estimate (modes.h): reads a sample of the strings of any server, trains
 * dictionaries with it here, and prints what compression would save. Invariant: it only reads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_LZ4
#include <lz4.h>
#endif

#include "base/base.h"
#include "base/number.h"
#include "store/value_survey.h"
#include "tools/cli/job_progress.h"
#include "tools/cli/modes.h"
#include "tools/cli/scan.h"

enum {
    KEYS_MAX = 20000,
    VALUE_MIN = 64, /* bytes: the default of value-compression-min-bytes */
    SAMPLE_BYTES = 64 * 1024 * 1024,
    NAME_WIDTH = 24,
};

typedef struct estimateJob {
    valueSurvey *survey;
    uint64_t keys, strings, all_keys; /* sampled; of them, strings of VALUE_MIN; in the database */
    uint64_t wanted;
    jobProgress progress;
} estimateJob;

/* ------------------------------------------------------------------ sampling */

/* The value of a key, of which only its start is fetched. Keys of other types are errors, those
 * that have gone are empty. */
static void addValue(estimateJob *job, const valkeyReply *key, const valkeyReply *length,
                     const valkeyReply *start) {
    job->keys++;
    if (length->type != VALKEY_REPLY_INTEGER || length->integer < VALUE_MIN) return;
    if (start->type != VALKEY_REPLY_STRING || start->len < VALUE_MIN) return;
    job->strings++;
    valueSurveyAdd(job->survey, 0, sliceMake(key->str, key->len),
                   sliceMake(start->str, start->len));
}

static bool takePage(connection *c, const valkeyReply *keys, void *arg) {
    estimateJob *job = arg;
    for (size_t i = 0; i < keys->elements; i++) {
        const valkeyReply *key = keys->element[i];
        connectionQueue(c, "STRLEN %b", key->str, key->len);
        connectionQueue(c, "GETRANGE %b 0 %d", key->str, key->len, SURVEY_VALUE_MAX - 1);
    }
    for (size_t i = 0; i < keys->elements; i++) {
        valkeyReply *length = connectionNext(c), *start = connectionNext(c);
        addValue(job, keys->element[i], length, start);
        freeReplyObject(length);
        freeReplyObject(start);
    }
    jobProgressAt(&job->progress, job->keys);
    return job->keys < job->wanted;
}

/* ------------------------------------------------------------------ LZ4 */

typedef struct lz4Sum {
    uint64_t plain, packed;
} lz4Sum;

static void addLz4(void *arg, slice value) {
    lz4Sum *sum = arg;
    size_t packed = value.len;
#ifdef HAVE_LZ4
    static char out[LZ4_COMPRESSBOUND(SURVEY_VALUE_MAX)];
    check(value.len <= SURVEY_VALUE_MAX);
    int n = LZ4_compress_default(value.ptr, out, (int)value.len, (int)sizeof(out));
    if (n > 0 && (size_t)n < packed) packed = (size_t)n;
#endif
    sum->plain += value.len;
    sum->packed += packed;
}

/* ------------------------------------------------------------------ report */

static void printClass(const estimateJob *job, unsigned index, double *plain, double *saved) {
    surveyClass c;
    valueTrial t;
    lz4Sum lz4 = {0, 0};
    char name[NAME_WIDTH + 1], human[NUMBER_TEXT_MAX];
    const valueTrialPlan plan = {.dictionary_max = VALUE_CODEC_DICTIONARY_MAX};
    valueSurveyClass(job->survey, index, &c);
    valueSurveyTry(job->survey, index, &plan, &t);
    valueSurveyEach(job->survey, index, addLz4, &lz4);
    int len = snprintf(name, sizeof(name), "%.*s", (int)sizeMin(c.prefix.len, NAME_WIDTH - 1),
                       c.prefix.ptr);
    for (int i = 0; i < len; i++) {
        if (name[i] <= ' ' || name[i] > '~') name[i] = '?';
    }
    memcpy(name + len, "*", 2);
    double scale = (double)job->all_keys / (double)job->keys;
    double bytes = (double)c.bytes * scale;
    printf("%-*s %10.0f %8.0f ", NAME_WIDTH, c.prefix.len ? name : "(other keys)",
           (double)c.values * scale, (double)c.bytes / (double)c.values);
    *plain += bytes;
    if (!t.tested) {
        printf("  too few values (%u of %d needed)\n", c.samples, SURVEY_SAMPLES_MIN);
        return;
    }
    double gain = t.share < 1 ? bytes * (1 - t.share) : 0;
    *saved += gain;
    numberPrintHuman(human, (uint64_t)gain);
    printf("%5.2f %5.2f %10.2f %11.1f %9.1f %10s %4.0f %%\n",
           (double)lz4.packed / (double)lz4.plain, t.alone, t.share, t.compress_us, t.expand_us,
           human, bytes > 0 ? 100 * gain / bytes : 0);
    valueCodecFree(t.codec);
}

static void printReport(estimateJob *job) {
    unsigned count = valueSurveyEnd(job->survey);
    char human[NUMBER_TEXT_MAX];
    double plain = 0, saved = 0;
    printf("Sampled %" PRIu64 " of %" PRIu64 " keys: %" PRIu64 " strings of %d bytes or more\n",
           job->keys, job->all_keys, job->strings, VALUE_MIN);
    if (count == 0) {
        puts("Nothing to compress.");
        return;
    }
    puts(
        "Share of the bytes of the values that remains, measured on values that the dictionary was\n"
        "not trained on; time per value on this machine; estimated for all keys:\n");
    printf("%-*s %10s %8s %5s %5s %10s %11s %9s %17s\n", NAME_WIDTH, "keys", "values", "mean",
           "lz4", "zstd", "dictionary", "compress us", "expand us", "would save");
    for (unsigned i = 0; i < count; i++) printClass(job, i, &plain, &saved);
    numberPrintHuman(human, (uint64_t)saved);
    printf(
        "\nvalue-compression would save %s, %.0f %% of these values, and add the time to expand to the\n"
        "first read of a value that is not read often.\n",
        human, plain > 0 ? 100 * saved / plain : 0);
}

int modeCompressionEstimate(connection *c) {
    reason why;
    if (valueCodecRequire(&why) != OK) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    if (!connectionConnect(c)) return 1;
    /* Sampling is not to make keys recently used; older servers do not know the command. */
    freeReplyObject(connectionCommand(c, "CLIENT NO-TOUCH ON"));
    valkeyReply *size = connectionRequire(c, "DBSIZE", "DBSIZE");
    estimateJob job = {.survey = valueSurveyNew(SAMPLE_BYTES), .all_keys = (uint64_t)size->integer};
    job.wanted = job.all_keys < KEYS_MAX ? job.all_keys : KEYS_MAX;
    freeReplyObject(size);
    jobProgressBegin(&job.progress, c->options->progress, "compression-estimate", "keys",
                     job.wanted);
    scanKeys(c, takePage, &job);
    jobProgressEnd(&job.progress, job.keys);
    if (job.all_keys < job.keys) job.all_keys = job.keys; /* keys were added meanwhile */
    printReport(&job);
    valueSurveyFree(job.survey);
    valueCodecFreeContexts();
    return 0;
}
