/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The trainer of dictionaries (dictionary_trainer.h).
 *
 * Invariant: while the thread runs, the survey and the trial are its own, and no dictionary is
 * freed (dictionariesHold()). It ends by itself after one class; the cron takes the result, and
 * starts the next one after a pause that makes its share of CPU time the configured one. Whatever
 * changes what a database number means ends a round: its results are dropped. */
#include "engine/dictionary_trainer.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/random.h"
#include "engine/engine_priv.h"
#include "engine/hot.h"
#include "engine/memory.h"
#include "engine/pace.h"
#include "io/thread.h"
#include "store/compressed.h"
#include "store/dictionary.h"
#include "store/key_prefix.h"
#include "store/store.h"
#include "store/value_survey.h"

enum {
    STEP_US = 500,      /* of sampling, in each run of the cron */
    STEP_KEYS = 32,     /* of all databases, one after the other */
    ROUND_KEYS = 16384, /* keys to sample, if there are so many */
    FEW_KEYS = 512,     /* fewer are looked at more than once, for the nodes of long values */
    LOOK_NODES = 2,     /* of such a value, at each look */
    ROUND_REST_MS = 60 * 1000,
    SMALL_REST_MS = 2000, /* if no class has been found or is left to try */
    NOTES = 2 * SURVEY_CLASSES_MAX,
    SKIP_MAX = 63,            /* rounds that a class without gain is left alone */
    SAMPLES_PART = 4,         /* of value-compression-dict-memory are for samples */
    SAMPLES_MIN = 256 * 1024, /* bytes */
    MAXMEMORY_PART = 16,      /* of maxmemory may be dictionaries */
    SMALL_CLASS = 4 << 20,    /* bytes: classes below get small dictionaries */
    SMALL_DICTIONARY = 16384,
    CODEC_FIXED = 128 * 1024, /* of a codec, in addition to its dictionary, at most */
    CODEC_COPIES = 2,         /* of the dictionary */
    SAVED_PER_MEMORY = 2,     /* bytes that one byte of a new dictionary must save */
    SHOWN = 10,
};
/* A new dictionary is used if its share is below; and below this part of the present one's, which
 * is tested first: while its share is below so much of what it was when it was new, it remains. */
#define SHARE_MAX 0.85
#define BETTER 0.95
#define WORSE 1.10
/* A dictionary with which values take more than this is given up, if no new one is better. */
#define USELESS 0.95

typedef enum trainerState { RESTING, SAMPLING, TESTING } trainerState;

/* Results of earlier rounds for a class of keys. */
typedef struct classNote {
    int db_id;
    uint8_t prefix_len;
    char prefix[KEY_PREFIX_MAX];
    bool used;
    unsigned skip, skip_next; /* rounds to leave it alone: now, and after another try in vain */
    double mean;              /* bytes of its values at the last try */
    double share;             /* of its dictionary when it was new */
} classNote;

static struct {
    trainerState state;
    bool stale; /* the results of this round are dropped */
    pace pace;  /* of sampling, and of the thread */
    int64_t rest_until_ms;
    valueSurvey *survey;
    uint64_t looks, looks_wanted, keys; /* looked at in this round; to look at; in the keyspace */
    uint64_t fields;                    /* of large hashes that were sampled in this round */
    int db;                             /* the next one whose keys are looked at */
    unsigned class_count, class_next;
    bool tried; /* a class, in this round */
    classNote notes[NOTES];
    /* The thread's. */
    thread runner;
    bool running, done; /* `done` is set by the thread */
    unsigned index;     /* of the class in the survey */
    valueTrialPlan plan;
    valueTrial trial;
    int64_t begun_us, ended_us;
    /* Since the start, for INFO. */
    uint64_t rounds, trained, accepted, no_memory, thread_us, sample_us;
} trainer;

/* ------------------------------------------------------------------ notes */

/* The note of a class; a new one takes the place of the one that is least needed. */
static classNote *noteOf(const surveyClass *c) {
    hotCheck(c->prefix.len <= KEY_PREFIX_MAX);
    classNote *place = &trainer.notes[0];
    for (int i = 0; i < NOTES; i++) {
        classNote *n = &trainer.notes[i];
        if (n->used && n->db_id == c->db_id &&
            sliceEqual(sliceMake(n->prefix, n->prefix_len), c->prefix))
            return n;
        if (place->used && (!n->used || n->skip < place->skip)) place = n;
    }
    *place = (classNote){
        .used = true, .db_id = c->db_id, .prefix_len = (uint8_t)c->prefix.len, .share = 1};
    if (c->prefix.len) memcpy(place->prefix, c->prefix.ptr, c->prefix.len);
    return place;
}

/* True if the class is left alone in this round. Values of another length are others. */
static bool leavesAlone(classNote *n, double mean) {
    if (n->skip == 0) return false;
    if (mean > n->mean * WORSE || mean < n->mean / WORSE) return false;
    n->skip--;
    return true;
}

static void noteFailure(classNote *n) {
    n->skip = n->skip_next;
    n->skip_next = n->skip_next < SKIP_MAX / 2 ? 2 * n->skip_next + 1 : SKIP_MAX;
}

/* ------------------------------------------------------------------ sampling */

static void endRound(int64_t rest_ms) {
    check(!trainer.running);
    valueSurveyFree(trainer.survey);
    trainer.survey = NULL;
    trainer.state = RESTING;
    trainer.rest_until_ms = clockMonoMs() + rest_ms;
}

/* Bytes of dictionaries, at most: they must not displace the keys that they are for. */
static size_t memoryMost(void) {
    uint64_t most = (uint64_t)engineConf.value_compression_dict_memory, limit = memoryLimit();
    return (size_t)(limit && limit / MAXMEMORY_PART < most ? limit / MAXMEMORY_PART : most);
}

/* Notes a value with many parts, each of which is a sample. */
static void findParts(void *arg, const robj *o) {
    bool *found = arg;
    if (objectIsTableOfFields(o) || compressedNodesToSample(o)) *found = true;
}

/* True if there may be samples for a dictionary: many keys, or a long value among few. */
static bool hasSamples(void) {
    bool found = trainer.keys >= SURVEY_SAMPLES_MIN;
    for (int i = 0; i < storeDbCount() && !found; i++)
        (void)dbSample(storeDb(i), SURVEY_SAMPLES_MIN, findParts, &found); /* all keys */
    return found;
}

static void beginRound(void) {
    check(!trainer.survey);
    size_t bytes = memoryMost() / SAMPLES_PART;
    trainer.keys = keyspaceKeyCount(keyspaceMain());
    if (!hasSamples()) {
        trainer.rest_until_ms = clockMonoMs() + SMALL_REST_MS;
        return;
    }
    trainer.survey = valueSurveyNew(bytes > SAMPLES_MIN ? bytes : SAMPLES_MIN);
    trainer.looks = trainer.fields = 0;
    trainer.looks_wanted = trainer.keys < ROUND_KEYS ? trainer.keys : ROUND_KEYS;
    trainer.stale = trainer.tried = false;
    trainer.class_next = 0;
    trainer.state = SAMPLING;
}

/* True for a text that may be compressed. */
static bool isCompressible(slice text) {
    return text.len >= (size_t)engineConf.value_compression_min_bytes &&
           text.len <= COMPRESSED_TEXT_MAX;
}

/* A value with nodes, whose texts are samples. */
typedef struct nodeSamples {
    slice key;
    int db_id;
    uint64_t weight; /* each of them stands for an equal part of all */
} nodeSamples;

static void addNode(void *arg, slice text) {
    const nodeSamples *of = arg;
    hotCheck(of->weight > 0);
    if (!isCompressible(text)) return;
    valueSurveyAddPart(trainer.survey, of->db_id, of->key, text, of->weight);
}

/* Samples of a long list or a stream; not if all of it is in nodes that are never compressed. */
static void addNodes(const robj *o, int db_id) {
    uint64_t nodes = compressedNodesToSample(o);
    if (!nodes) return;
    nodeSamples of = {objectKey(o), db_id, 1 + (nodes - 1) / LOOK_NODES};
    compressedSampleNodes(o, randomUniform(UINT64_MAX), LOOK_NODES, addNode, &of);
    if (trainer.looks_wanted < FEW_KEYS) trainer.looks_wanted = FEW_KEYS;
}

/* One step of sampling. */
typedef struct sampleStep {
    int db_id;
    int64_t deadline_us;
    bool over; /* it has passed */
    bool all;  /* few keys, which come in the same order each time: none is left out */
} sampleStep;

static void addSample(void *arg, const robj *o) {
    sampleStep *step = arg;
    size_t min = (size_t)engineConf.value_compression_min_bytes;
    if (step->over) return;
    trainer.looks++;
    if (compressedHasNodes(o)) {
        addNodes(o, step->db_id);
    } else if (trainer.looks > trainer.keys && !objectIsTableOfFields(o)) {
        valueSurveyCountObject(trainer.survey, step->db_id, o, min); /* it has been added */
    } else {
        trainer.fields += valueSurveyAddObject(trainer.survey, step->db_id, o, min);
    }
    step->over = !step->all && clockMonoUs() >= step->deadline_us;
}

/* True if the round has samples enough. Where large hashes are, few keys have many values: they
 * are looked at again. */
static bool hasEnough(void) {
    if (trainer.looks < trainer.looks_wanted) return false;
    return !trainer.fields || trainer.looks + trainer.fields >= ROUND_KEYS;
}

/* Looks at some keys of each database, as many as its share of all keys; from that database on at
 * which the last step was over. */
static void sampleSome(sampleStep *step) {
    for (int left = storeDbCount(); left > 0 && !step->over; left--) {
        step->db_id = trainer.db++ % storeDbCount();
        trainer.db %= storeDbCount();
        uint64_t size = dbSize(storeDb(step->db_id));
        if (!size) continue;
        uint64_t most = STEP_KEYS * size / (trainer.keys + 1) + 1;
        step->all = most >= size;
        (void)dbSample(storeDb(step->db_id), most, addSample, step); /* the callback counts */
        step->over = clockMonoUs() >= step->deadline_us;
    }
}

static void sample(void) {
    int64_t begun_us = clockMonoUs();
    uint64_t before = trainer.looks;
    sampleStep step = {.deadline_us = begun_us + STEP_US};
    do { sampleSome(&step); } while (!hasEnough() && !step.over && trainer.looks > before);
    int64_t now_us = clockMonoUs();
    trainer.sample_us += (uint64_t)(now_us - begun_us);
    paceTook(&trainer.pace, begun_us, now_us, engineConf.value_compression_cpu);
    if (trainer.looks == before) {
        endRound(SMALL_REST_MS); /* the keys have gone */
    } else if (hasEnough()) {
        trainer.class_count = valueSurveyEnd(trainer.survey);
        trainer.state = TESTING;
        trainer.rounds++;
    }
}

/* ------------------------------------------------------------------ testing */

static void *testClass(void *arg) {
    (void)arg; /* all is in `trainer` */
    check(!threadIsMain());
    threadGiveWay();
    valueSurveyTry(trainer.survey, trainer.index, &trainer.plan, &trainer.trial);
    __atomic_store_n(&trainer.done, true, __ATOMIC_RELEASE);
    return NULL;
}

/* Bytes of a class in the whole keyspace, estimated. */
static double classBytes(const surveyClass *c) {
    return (double)c->bytes * (double)trainer.keys / (double)trainer.looks;
}

/* The largest dictionary that a class may get; 0: there is no memory for one. */
static size_t dictionaryRoom(const surveyClass *c) {
    size_t used = dictionariesMemory(), most = memoryMost();
    if (most < used + CODEC_FIXED) return 0;
    size_t room = (most - used - CODEC_FIXED) / CODEC_COPIES;
    size_t wanted = classBytes(c) < SMALL_CLASS ? SMALL_DICTIONARY : VALUE_CODEC_DICTIONARY_MAX;
    return room < VALUE_CODEC_DICTIONARY_MIN ? 0 : room < wanted ? room : wanted;
}

/* Starts the thread for the next class that needs it; ends the round if there is none. */
static void testNext(void) {
    for (; trainer.class_next < trainer.class_count; trainer.class_next++) {
        surveyClass c;
        valueSurveyClass(trainer.survey, trainer.class_next, &c);
        classNote *n = noteOf(&c);
        double mean = (double)c.bytes / (double)c.values;
        if (c.samples < SURVEY_SAMPLES_MIN || leavesAlone(n, mean)) continue;
        const valueDictionary *d = dictionaryOfClass(c.db_id, c.prefix);
        trainer.plan = (valueTrialPlan){.former = d ? dictionaryCodec(d) : NULL,
                                        .train_above = d ? n->share * WORSE : 0,
                                        .dictionary_max = dictionaryRoom(&c)};
        if (!trainer.plan.dictionary_max || !dictionaryHasRoom(c.db_id, c.prefix)) {
            trainer.no_memory++;
            continue;
        }
        n->mean = mean;
        reason why;
        trainer.index = trainer.class_next++;
        trainer.done = false;
        trainer.begun_us = clockMonoUs();
        if (threadStart(&trainer.runner, "dictionaries", "", testClass, NULL, &why) != OK) {
            logWarning("Training of dictionaries: %s", why.text);
            break;
        }
        dictionariesHold();
        trainer.running = trainer.tried = true;
        return;
    }
    endRound(trainer.tried ? ROUND_REST_MS : SMALL_REST_MS);
}

/* Uses the new dictionary if it gains enough. */
static void judge(void) {
    surveyClass c;
    valueTrial *t = &trainer.trial;
    valueSurveyClass(trainer.survey, trainer.index, &c);
    classNote *n = noteOf(&c);
    if (!t->codec) {
        if (!trainer.plan.former) noteFailure(n);
        if (trainer.plan.former && n->share == 1) n->share = t->former; /* the note is new */
        return;
    }
    trainer.trained++;
    double saved = classBytes(&c) * (1 - t->share); /* a former dictionary is freed later */
    bool wins = t->share < SHARE_MAX && t->share < t->former * BETTER &&
                saved > SAVED_PER_MEMORY * (double)valueCodecMemory(t->codec);
    if (!wins || trainer.stale) {
        valueCodecFree(t->codec);
        if (!wins) noteFailure(n);
        if (!trainer.stale && t->former > USELESS) dictionaryRetire(c.db_id, c.prefix);
        return;
    }
    uint32_t id;
    reason why;
    if (dictionaryAddCodec(c.db_id, c.prefix, t->codec, &id, &why) != OK) {
        logWarning("A dictionary for values of %.*s: %s", (int)c.prefix.len, c.prefix.ptr,
                   why.text);
        return;
    }
    trainer.accepted++;
    n->share = t->share;
    n->skip = n->skip_next = 0;
}

static void takeResult(void) {
    hotCheck(trainer.running);
    threadJoin(&trainer.runner);
    dictionariesUnhold();
    trainer.running = false;
    int64_t now_us = clockMonoUs();
    trainer.thread_us += (uint64_t)(now_us - trainer.begun_us);
    paceTook(&trainer.pace, trainer.begun_us, now_us, engineConf.value_compression_cpu);
    judge();
}

static void tick(int64_t budget_us) {
    (void)budget_us; /* a step is shorter */
    if (trainer.running) {
        if (!__atomic_load_n(&trainer.done, __ATOMIC_ACQUIRE)) return;
        takeResult();
    }
    bool on = engineConf.value_compression != COMPRESSION_NO;
    if (trainer.state != RESTING && (trainer.stale || !on)) endRound(on ? SMALL_REST_MS : 0);
    if (!on || engineHot.loading) return;
    switch (trainer.state) {
    case RESTING:
        if (clockMonoMs() >= trainer.rest_until_ms) beginRound();
        break;
    case SAMPLING:
        if (clockMonoUs() >= trainer.pace.next_us) sample();
        break;
    case TESTING:
        if (clockMonoUs() >= trainer.pace.next_us) testNext();
        break;
    }
}

static bool isBusy(void) { return trainer.state != RESTING; }

/* ------------------------------------------------------------------ registration */

static void onDb(const dbEvent *e) {
    if (e->kind == DB_SWAPPED || e->kind == DB_FLUSHED || e->kind == DB_LOAD_ENDED)
        trainer.stale = true;
    if (e->kind == DB_SWAPPED) memset(trainer.notes, 0, sizeof(trainer.notes));
}

static status onShutdown(uint32_t flags, reason *why) {
    (void)flags, (void)why; /* nothing can prevent it */
    if (trainer.running) {
        trainer.stale = true;
        takeResult();
    }
    if (trainer.state != RESTING) endRound(0);
    return OK;
}

/* The name of a class as a value in a list of INFO: "user:*". */
static void printName(str *out, slice prefix) {
    for (size_t i = 0; i < prefix.len; i++) {
        char byte = prefix.ptr[i];
        strAppendByte(out, byte > ' ' && byte < 127 && byte != ',' && byte != '=' ? byte : '?');
    }
    strAppendByte(out, '*');
}

static int byUsers(const void *a, const void *b) {
    uint64_t x = ((const dictionaryReport *)a)->users, y = ((const dictionaryReport *)b)->users;
    return (x < y) - (x > y);
}

/* The dictionaries with most values. */
static void printMemory(str *out) {
    int count = 0;
    if (!dictionariesMemory()) { /* there are none */
        strAppendText(out, "value_dictionaries:0\r\nvalue_dictionaries_bytes:0\r\n");
        return;
    }
    dictionaryReport *all = memNewArray(dictionaryReport, DICTIONARY_ID_MAX);
    for (uint32_t id = 1; id <= DICTIONARY_ID_MAX; id++) count += dictionaryRead(id, &all[count]);
    strAppendFormat(out, "value_dictionaries:%d\r\nvalue_dictionaries_bytes:%zu\r\n", count,
                    dictionariesMemory());
    qsort(all, (size_t)count, sizeof(*all), byUsers);
    for (int i = 0; i < count && i < SHOWN; i++) {
        const dictionaryReport *r = &all[i];
        strAppendFormat(out, "value_dictionary_%d:db=%d,keys=", i, r->db_id);
        printName(out, r->prefix);
        strAppendFormat(out,
                        ",current=%s,values=%llu,ratio=%.3f,recent_ratio=%.3f,bytes=%zu,id=%u\r\n",
                        r->is_current ? "yes" : "no", (unsigned long long)r->users,
                        r->plain_bytes ? (double)r->packed_bytes / (double)r->plain_bytes : 1,
                        r->recent, r->memory, r->id);
    }
    memFree(all);
}

static void printStats(str *out) {
    strAppendField(out, "value_dictionary_rounds", trainer.rounds);
    strAppendField(out, "value_dictionaries_trained", trainer.trained);
    strAppendField(out, "value_dictionaries_accepted", trainer.accepted);
    strAppendField(out, "value_dictionaries_without_memory", trainer.no_memory);
    strAppendField(out, "value_dictionary_training_milliseconds", trainer.thread_us / 1000);
    strAppendField(out, "value_dictionary_sampling_milliseconds", trainer.sample_us / 1000);
}

static const tickJob ticks[] = {{"dictionaries", 0, tick, isBusy}, {0}};
static const infoSection sections[] = {
    {"memory", "# Memory", INFO_NORMAL, INFO_MEMORY, printMemory},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {0},
};

const feature dictionaryTrainerFeature = {.name = "dictionaries",
                                          .info = sections,
                                          .ticks = ticks,
                                          .on_db = onDb,
                                          .on_shutdown = onShutdown};
