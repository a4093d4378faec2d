/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trains the dictionaries of compressed values from the values themselves.
 *
 * Rounds: the cron samples values in small steps (store/value_survey.h), then a thread of low
 * priority tests the classes one after the other: the present dictionary with the new samples, and
 * a new one if there is none or if the present one has become worse. A new one is used if it gains
 * enough on values that it was not trained on. Nothing is done while value-compression is no; the
 * thread uses value-compression-cpu percent of a processor. Main thread only. */
#ifndef ENGINE_DICTIONARY_TRAINER_H
#define ENGINE_DICTIONARY_TRAINER_H

#include "engine/hooks.h"

extern const feature dictionaryTrainerFeature;

#endif
