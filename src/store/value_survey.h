/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Samples of values by class of keys (dictionary.h), and what a dictionary of each class gains.
 *
 * The classes are learned from the keys: prefixes that many of them have. All others are one class
 * per database, with the empty prefix. The memory of samples is bounded; each class keeps a random
 * choice of its values. A survey belongs to one thread at a time. */
#ifndef STORE_VALUE_SURVEY_H
#define STORE_VALUE_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "store/object.h"
#include "store/value_codec.h"

enum {
    SURVEY_VALUE_MAX = 16 * 1024,         /* bytes of a sample: the start of longer values */
    SURVEY_CLASS_BYTES = 2 * 1024 * 1024, /* samples of a class */
    SURVEY_SAMPLES_MIN = 128,             /* of a class, to train a dictionary */
    SURVEY_CLASSES_MAX = 64,
};

typedef struct valueSurvey valueSurvey;

/* Keeps samples of at most `bytes_max` bytes. */
valueSurvey *valueSurveyNew(size_t bytes_max);
/* NULL is allowed. */
void valueSurveyFree(valueSurvey *s);
/* One more value; a key may come again. Less than 1 us, and the copy. */
void valueSurveyAdd(valueSurvey *s, int db_id, slice key, slice value);
/* What can be compressed of an object and has `min` bytes or more: its value, or those of some
 * fields of a large hash, each of which stands for as many as the hash has for one that is looked
 * at. Returns the number of such fields. Main thread. */
unsigned valueSurveyAddObject(valueSurvey *s, int db_id, const robj *o, size_t min);
/* The same value once more, without a sample: an object that is no large hash, and was added. */
void valueSurveyCountObject(valueSurvey *s, int db_id, const robj *o, size_t min);
/* A part of a value, as a value of its own: it stands for as many as `weight` says. */
void valueSurveyAddPart(valueSurvey *s, int db_id, slice key, slice part, uint64_t weight);
/* Ends the collection; returns the number of classes, those with most bytes first. */
unsigned valueSurveyEnd(valueSurvey *s);

typedef struct surveyClass {
    int db_id;
    slice prefix;     /* borrowed from the survey */
    uint64_t values;  /* that were added, with their weights */
    uint64_t bytes;   /* of them */
    unsigned samples; /* that were kept */
} surveyClass;
void valueSurveyClass(const valueSurvey *s, unsigned index, surveyClass *out);

/* Calls `visit` for each sample of a class. */
void valueSurveyEach(const valueSurvey *s, unsigned index, void (*visit)(void *arg, slice value),
                     void *arg);

/* Results with values that the dictionary was not trained on. Shares are packed bytes per
 * plain byte, where a value that gains nothing counts as it is. */
typedef struct valueTrial {
    unsigned tested;               /* values; 0: there were too few samples */
    double alone;                  /* without a dictionary */
    double former;                 /* with the codec that was given; 1: none */
    double share;                  /* with the new dictionary; 1: none could be trained */
    double compress_us, expand_us; /* medians per value, with the new dictionary */
    valueCodec *codec;             /* of it, which the caller frees or takes; NULL: none */
} valueTrial;
typedef struct valueTrialPlan {
    const valueCodec *former; /* of the present dictionary; NULL: none */
    double train_above;       /* a new one is trained only if the share with `former` is above */
    size_t dictionary_max;    /* its bytes, at most VALUE_CODEC_DICTIONARY_MAX */
    bool is_quick; /* nothing is trained: some values are the dictionary, few are tested. It gains
                      somewhat less than a trained one. Below 2 ms. */
} valueTrialPlan;
/* Trains a dictionary with the values of three of four keys of a class, and tests it with those of
 * the others. Takes up to some seconds and, while it trains, 20 MB. */
void valueSurveyTry(const valueSurvey *s, unsigned index, const valueTrialPlan *plan,
                    valueTrial *out);

#endif
