/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Samples of values by class (value_survey.h).
 *
 * Invariants: `bytes` is the sum of the lengths of all samples, at most `bytes_max`; a group with
 * the empty prefix has the values of all keys of its database whose prefix has no group. If all
 * places are in use, a new prefix displaces the one with the fewest values, whose values go to that
 * group: frequent prefixes remain, those that differ for each key do not. */
#include "store/value_survey.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/random.h"
#include "store/compressed.h"
#include "store/key_prefix.h"
#include "store/type_hash.h"

/* A prefix is a class if it has so many values, and at least so small a part of all. */
enum { GROUPS = 2 * SURVEY_CLASSES_MAX, CLASS_VALUES_MIN = 24, CLASS_PART = 400 };
/* The values of one of so many keys are not trained on: whether by its name, or by the bytes of a
 * part of a value, as they may have been sampled more than once. */
enum { TEST_ONE_OF = 4 };
/* Values that a quick trial compresses. */
enum { QUICK_TESTS = 100 };
/* A dictionary has this part of the bytes that it is trained on. */
enum { DICTIONARY_PART = 16 };
/* Bytes of an object in addition to the packed ones: number of the dictionary, length. */
enum { HEAD = 3 };

typedef struct sample {
    char *bytes;
    uint32_t len;
    bool is_test; /* not trained on */
} sample;

typedef struct group {
    int db_id;
    uint8_t prefix_len;
    bool full; /* samples were left out: new ones replace others */
    char prefix[KEY_PREFIX_MAX];
    uint64_t values, all_bytes; /* that were added, or that those stand for */
    uint64_t offered;           /* samples */
    sample *samples;
    unsigned count, cap;
    size_t bytes; /* of samples */
} group;

struct valueSurvey {
    group groups[GROUPS];
    unsigned count;
    unsigned hand; /* where the search for a group to displace begins */
    uint64_t values;
    size_t bytes, bytes_max;
};

valueSurvey *valueSurveyNew(size_t bytes_max) {
    valueSurvey *s = memNew(valueSurvey);
    s->bytes_max = bytes_max;
    return s;
}

static void clearGroup(valueSurvey *s, group *g) {
    hotCheck(s->bytes >= g->bytes);
    for (unsigned i = 0; i < g->count; i++) memFree(g->samples[i].bytes);
    memFree(g->samples);
    s->bytes -= g->bytes;
}

void valueSurveyFree(valueSurvey *s) {
    if (!s) return;
    for (unsigned i = 0; i < s->count; i++) clearGroup(s, &s->groups[i]);
    check(s->bytes == 0);
    memFree(s);
}

/* ------------------------------------------------------------------ samples */

static void removeSample(valueSurvey *s, group *g, unsigned index) {
    hotCheck(index < g->count);
    s->bytes -= g->samples[index].len;
    g->bytes -= g->samples[index].len;
    memFree(g->samples[index].bytes);
    g->samples[index] = g->samples[--g->count];
}

static void putSample(valueSurvey *s, group *g, sample taken) {
    if (g->count == g->cap) {
        g->cap = g->cap ? 2 * g->cap : 16;
        g->samples = memRealloc(g->samples, g->cap * sizeof(sample));
    }
    g->samples[g->count++] = taken;
    g->bytes += taken.len;
    s->bytes += taken.len;
}

/* Removes samples until they fit, from the group that has most. */
static void keepWithin(valueSurvey *s) {
    while (s->bytes > s->bytes_max) {
        group *most = &s->groups[0];
        for (unsigned i = 1; i < s->count; i++) {
            if (s->groups[i].bytes > most->bytes) most = &s->groups[i];
        }
        check(most->count > 0);
        removeSample(s, most, (unsigned)randomUniform(most->count));
        most->full = true;
    }
}

/* Keeps a copy of the value, if it is among the random choice of its group. */
static void offerSample(valueSurvey *s, group *g, slice value, bool is_test) {
    if (value.len > SURVEY_VALUE_MAX) value.len = SURVEY_VALUE_MAX;
    if (g->bytes + value.len > SURVEY_CLASS_BYTES) g->full = true;
    if (g->full && g->count) {
        if (randomUniform(g->offered) >= g->count) return;
        removeSample(s, g, (unsigned)randomUniform(g->count));
    }
    putSample(s, g, (sample){memDup(value.ptr, value.len), (uint32_t)value.len, is_test});
    while (g->bytes > SURVEY_CLASS_BYTES) removeSample(s, g, (unsigned)randomUniform(g->count));
    keepWithin(s);
}

/* ------------------------------------------------------------------ groups */

static group *findGroup(valueSurvey *s, int db_id, slice prefix) {
    for (unsigned i = 0; i < s->count; i++) {
        group *g = &s->groups[i];
        if (g->db_id == db_id && sliceEqual(sliceMake(g->prefix, g->prefix_len), prefix)) return g;
    }
    return NULL;
}

static group *initGroup(group *g, int db_id, slice prefix) {
    hotCheck(prefix.len <= KEY_PREFIX_MAX);
    *g = (group){.db_id = db_id, .prefix_len = (uint8_t)prefix.len};
    if (prefix.len) memcpy(g->prefix, prefix.ptr, prefix.len);
    return g;
}

/* The group of all other keys of a database; NULL: there are too many databases. */
static group *restOf(valueSurvey *s, int db_id) {
    group *g = findGroup(s, db_id, SLICE(""));
    if (g || s->count == GROUPS) return g;
    return initGroup(&s->groups[s->count++], db_id, SLICE(""));
}

/* Moves the values of `from` to the group of all others; what does not fit there is lost. */
static void mergeInto(valueSurvey *s, group *to, group *from) {
    hotCheck(to != from);
    to->values += from->values;
    to->offered += from->offered;
    to->all_bytes += from->all_bytes;
    for (unsigned i = 0; i < from->count; i++)
        offerSample(s, to, sliceMake(from->samples[i].bytes, from->samples[i].len),
                    from->samples[i].is_test);
    clearGroup(s, from);
    from->count = 0;
    from->bytes = 0;
}

/* A place for a new prefix, by displacing the group with the fewest values. */
static group *displace(valueSurvey *s) {
    group *least = NULL;
    for (unsigned i = 0; i < GROUPS; i++) {
        group *g = &s->groups[(s->hand + i) % GROUPS];
        if (g->prefix_len && (!least || g->values < least->values)) least = g;
    }
    if (!least) return NULL;
    group *rest = findGroup(s, least->db_id, SLICE(""));
    if (!rest) {
        /* Its own place becomes that of all others of its database; the next one will do. */
        least->prefix_len = 0;
        return displace(s);
    }
    s->hand = (unsigned)(least - s->groups) + 1;
    mergeInto(s, rest, least);
    return least;
}

static group *groupOf(valueSurvey *s, int db_id, slice prefix) {
    group *g = findGroup(s, db_id, prefix);
    if (g) return g;
    if (s->count < GROUPS) return initGroup(&s->groups[s->count++], db_id, prefix);
    g = displace(s);
    return g ? initGroup(g, db_id, prefix) : NULL;
}

/* Counts `weight` values of `len` bytes. Returns their group, or NULL. */
static group *countValues(valueSurvey *s, int db_id, slice key, size_t len, uint64_t weight) {
    hotCheck(weight > 0);
    group *g = groupOf(s, db_id, keyPrefix(key));
    s->values += weight;
    if (!g) return NULL;
    g->values += weight;
    g->all_bytes += len * weight;
    return g;
}

/* A value that has this name and stands for `weight` ones. */
static void addValue(valueSurvey *s, int db_id, slice key, slice name, slice value,
                     uint64_t weight) {
    group *g = countValues(s, db_id, key, value.len, weight);
    if (!g) return;
    hotCheck(g->values > 0);
    g->offered++;
    offerSample(s, g, value, hashBytes(name.ptr, name.len) % TEST_ONE_OF == 0);
}

void valueSurveyAdd(valueSurvey *s, int db_id, slice key, slice value) {
    addValue(s, db_id, key, key, value, 1);
}

void valueSurveyAddPart(valueSurvey *s, int db_id, slice key, slice part, uint64_t weight) {
    slice name = sliceMake(part.ptr, sizeMin(part.len, SURVEY_VALUE_MAX));
    addValue(s, db_id, key, name, part, weight);
}

typedef struct fieldSamples {
    valueSurvey *survey;
    int db_id;
    slice key;
    uint64_t fields;
    hashSampling how;
    unsigned added;
} fieldSamples;

static void addField(void *arg, const hashPair *pair) {
    fieldSamples *f = arg;
    uint64_t weight = f->fields / f->how.looked + 1;
    addValue(f->survey, f->db_id, f->key, pair->field, pair->value, weight);
    f->added++;
}

unsigned valueSurveyAddObject(valueSurvey *s, int db_id, const robj *o, size_t min) {
    enum { FIELDS = 32, FIELDS_BYTES = 64 * 1024 };
    if (objectIsTableOfFields(o)) {
        fieldSamples f = {.survey = s,
                          .db_id = db_id,
                          .key = objectKey(o),
                          .fields = hashLength(o),
                          .how = {.min = sizeMax(min, 1),
                                  .max = COMPRESSED_TEXT_MAX,
                                  .most = FIELDS,
                                  .bytes = FIELDS_BYTES}};
        hashSampleValues(o, &f.how, addField, &f);
        return f.added;
    }
    compressedMark mark = compressedSetMark();
    slice text = objectIsCompressed(o) ? compressedText(o) : compressedTextOf(o);
    if (text.len >= min && text.len <= COMPRESSED_TEXT_MAX)
        addValue(s, db_id, objectKey(o), objectKey(o), text, 1);
    compressedFreeSince(mark);
    return 0;
}

void valueSurveyCountObject(valueSurvey *s, int db_id, const robj *o, size_t min) {
    hotCheck(!objectIsTableOfFields(o));
    size_t len = objectIsCompressed(o) ? compressedRead(o).len : compressedTextOf(o).len;
    if (len < min || len > COMPRESSED_TEXT_MAX) return;
    (void)countValues(s, db_id, objectKey(o), len, 1); /* no sample is offered to its group */
}

static int byBytes(const void *a, const void *b) {
    uint64_t x = ((const group *)a)->all_bytes, y = ((const group *)b)->all_bytes;
    return (x < y) - (x > y);
}

/* Groups without values are removed, the others sorted. */
static void sortGroups(valueSurvey *s) {
    qsort(s->groups, s->count, sizeof(group), byBytes);
    while (s->count && !s->groups[s->count - 1].values) {
        clearGroup(s, &s->groups[s->count - 1]);
        s->count--;
    }
}

unsigned valueSurveyEnd(valueSurvey *s) {
    uint64_t least = CLASS_VALUES_MIN + s->values / CLASS_PART;
    sortGroups(s);
    for (unsigned i = 0; i < s->count; i++) {
        group *g = &s->groups[i];
        if (!g->prefix_len || (g->values >= least && i < SURVEY_CLASSES_MAX)) continue;
        group *rest = restOf(s, g->db_id);
        if (!rest || rest == g) {
            g->prefix_len = 0; /* there is no room: it becomes that group */
            continue;
        }
        mergeInto(s, rest, g);
        g->values = g->all_bytes = g->offered = 0;
        g->samples = NULL;
    }
    sortGroups(s);
    return s->count < SURVEY_CLASSES_MAX ? s->count : SURVEY_CLASSES_MAX;
}

void valueSurveyClass(const valueSurvey *s, unsigned index, surveyClass *out) {
    check(index < s->count);
    const group *g = &s->groups[index];
    *out = (surveyClass){.db_id = g->db_id,
                         .prefix = sliceMake(g->prefix, g->prefix_len),
                         .values = g->values,
                         .bytes = g->all_bytes,
                         .samples = g->count};
}

void valueSurveyEach(const valueSurvey *s, unsigned index, void (*visit)(void *arg, slice value),
                     void *arg) {
    check(index < s->count);
    const group *g = &s->groups[index];
    for (unsigned i = 0; i < g->count; i++)
        visit(arg, sliceMake(g->samples[i].bytes, g->samples[i].len));
}

/* ------------------------------------------------------------------ trying */

static int byNumber(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median in microseconds: other processes may have interrupted some. */
static double medianUs(int64_t *ns, unsigned count) {
    if (!count) return 0;
    qsort(ns, count, sizeof(*ns), byNumber);
    return (double)ns[count / 2] / 1000;
}

/* Bytes of a value that was packed to `packed` bytes, 0: it could not be. One that saves too little
 * is stored plain. */
static size_t storedBytes(size_t plain, size_t packed) {
    size_t with = packed + HEAD, saved = sizeMax(VALUE_SAVED_MIN, plain / VALUE_SAVED_SHARE);
    return packed && with + saved <= plain ? with : plain;
}

/* Packed bytes per plain byte of the samples that are not trained on. */
static double measure(const group *g, const valueCodec *codec, unsigned most, valueTrial *times) {
    char *packed = memAlloc(SURVEY_VALUE_MAX), *back = memAlloc(SURVEY_VALUE_MAX);
    int64_t *compress_ns = memNewArray(int64_t, g->count);
    int64_t *expand_ns = memNewArray(int64_t, g->count);
    uint64_t plain_bytes = 0, packed_bytes = 0;
    unsigned tested = 0;
    for (unsigned i = 0; i < g->count && tested < most; i++) {
        if (!g->samples[i].is_test) continue;
        slice plain = sliceMake(g->samples[i].bytes, g->samples[i].len);
        int64_t begin_ns = clockMonoNs();
        size_t n = valueCodecCompress(codec, plain, packed, SURVEY_VALUE_MAX);
        int64_t middle_ns = clockMonoNs();
        bool same = n && valueCodecExpand(codec, sliceMake(packed, n), back, plain.len);
        compress_ns[tested] = middle_ns - begin_ns;
        expand_ns[tested++] = clockMonoNs() - middle_ns;
        if (n) check(same);
        plain_bytes += plain.len;
        packed_bytes += storedBytes(plain.len, n);
    }
    times->tested = tested;
    times->compress_us = medianUs(compress_ns, tested);
    times->expand_us = medianUs(expand_ns, tested);
    memFree(compress_ns);
    memFree(expand_ns);
    memFree(packed);
    memFree(back);
    return plain_bytes ? (double)packed_bytes / (double)plain_bytes : 1;
}

/* A codec with a dictionary of the samples that are trained on; NULL: they are of no use. */
static valueCodec *train(const group *g, const valueTrialPlan *plan) {
    size_t *lengths = memNewArray(size_t, g->count), bytes = 0, size = 0;
    char *all = memAlloc(g->bytes), *dictionary = NULL;
    unsigned count = 0;
    for (unsigned i = 0; i < g->count; i++) {
        if (g->samples[i].is_test || !g->samples[i].len) continue;
        memcpy(all + bytes, g->samples[i].bytes, g->samples[i].len);
        bytes += lengths[count++] = g->samples[i].len;
    }
    size_t cap = bytes / DICTIONARY_PART;
    if (cap > plan->dictionary_max) cap = plan->dictionary_max;
    const char *source = all;
    if (plan->is_quick) {
        size = sizeMin(bytes, plan->dictionary_max);
    } else if (cap >= VALUE_CODEC_DICTIONARY_MIN) {
        dictionary = memAlloc(cap);
        size = valueCodecTrain(all, lengths, count, dictionary, cap);
        source = dictionary;
    }
    valueCodec *codec = NULL;
    if (size && valueCodecNew(sliceMake(source, size), &codec, NULL) != OK) codec = NULL;
    memFree(dictionary);
    memFree(all);
    memFree(lengths);
    return codec;
}

void valueSurveyTry(const valueSurvey *s, unsigned index, const valueTrialPlan *plan,
                    valueTrial *out) {
    check(index < s->count);
    check(plan->dictionary_max <= VALUE_CODEC_DICTIONARY_MAX);
    const group *g = &s->groups[index];
    *out = (valueTrial){.alone = 1, .former = 1, .share = 1};
    valueCodec *without = NULL;
    if (g->count < SURVEY_SAMPLES_MIN || valueCodecNew(SLICE(""), &without, NULL) != OK) return;
    unsigned most = plan->is_quick ? QUICK_TESTS : g->count;
    out->alone = measure(g, without, most, out);
    valueCodecFree(without);
    if (plan->former) out->former = measure(g, plan->former, most, out);
    if (out->former > plan->train_above) out->codec = train(g, plan);
    if (out->codec) out->share = measure(g, out->codec, most, out);
}
