/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trains the dictionaries of compressed values from the values themselves.
 *
 * Rounds: the cron samples values in small steps (store/value_survey.h), then a thread of low
 * priority tests the classes one after the other: the present dictionary with the new samples, and
 * a new one if there is none or if the present one has become worse. A new one is used if it gains
 * enough on values that it was not trained on. Main thread only. */
#ifndef ENGINE_DICTIONARY_TRAINER_H
#define ENGINE_DICTIONARY_TRAINER_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/hooks.h"

extern const feature dictionaryTrainerFeature;

/* Whether values are compressed: those of at least `min_bytes`. The thread may use `cpu_percent` of
 * one processor. At first it is off. */
typedef struct trainerSettings {
    bool on;
    size_t min_bytes;
    int cpu_percent;
} trainerSettings;
void dictionaryTrainerSet(const trainerSettings *settings);

#endif
