/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The order of saves of the map, which a thread writes, and of what depends on them.
 *
 * Example: a node votes. The change of the map gets the number 7, and a save that contains it
 * begins. The vote is in the output of a link already, marked with 7. The node serves its clients
 * and takes messages meanwhile; further output is marked, too. When the save has ended, 7 is safe,
 * and everything up to that mark is sent.
 *
 * | what | may happen |
 * |---|---|
 * | output of the bus | when all changes that preceded it are safe: saveMarks |
 * | writes to a slot that this node has got | when a save contains its claim: mapSavesUnsaved() |
 * | deleting keys of slots that this node has lost | when all changes are safe |
 * | redirects to the new owner, reads | at once: they promise nothing of this node |
 * | replies to commands that have changed the map | when a save contains it: mapSavesHasOrders() |
 *
 * Main thread only. */
#ifndef BUS_MAP_SAVES_H
#define BUS_MAP_SAVES_H

#include "bus/map.h"

typedef struct mapSaves {
    uint64_t wanted;    /* the number of the last change on which something depends */
    uint64_t safe;      /* nothing waits for changes up to this one any more */
    uint64_t written;   /* changes up to this one are in the save that runs */
    int64_t began_ms;   /* when it began */
    bool is_due;        /* the map is to be saved (again) */
    bool owes_flush;    /* the next save must be on the disk when it has ended */
    bool runs, flushes; /* a save runs; it is such a one */
    bool has_unsaved;
    bool has_orders; /* commands have changed the map, and no save contains that */
    /* Own slots of which no save contains the claim; those that the last save contains, and those
     * in the one that runs. */
    uint64_t unsaved[SLOT_WORDS], saved_slots[SLOT_WORDS], writing_slots[SLOT_WORDS];
} mapSaves;

/* To be called when the map has just been read from the disk. */
void mapSavesInit(mapSaves *s, const clusterMap *m);
/* Takes the bits CLUSTER_MAP_SAVE and CLUSTER_MAP_SYNC of m->changed: the changes are to be saved,
 * and what happens from now on depends on them. `ordered`: commands have made them. */
void mapSavesTake(mapSaves *s, clusterMap *m, bool ordered);
/* True if a save has to begin now, and has begun: the caller writes the map as it is. *flush: it
 * must be on the disk before mapSavesEnd(). */
bool mapSavesBegin(mapSaves *s, const clusterMap *m, int64_t now_ms, bool *flush);
/* The save has ended. A failed one is repeated with the next change, and nothing waits for that. */
void mapSavesEnd(mapSaves *s, const clusterMap *m, bool is_written);
/* Nothing waits for the save that runs any more: it takes too long. */
void mapSavesGiveUp(mapSaves *s, const clusterMap *m);
/* True if the replies to commands have to wait, because saves run or are due. It is also about
 * changes on which nothing else depends: a mark that a slot is imported must be in the file before
 * keys come, else a restarted node would delete them as those of another node. */
static inline bool mapSavesHasOrders(const mapSaves *s) { return s->has_orders; }
/* True if something else may have to wait. */
static inline bool mapSavesIsPending(const mapSaves *s) { return s->safe < s->wanted; }
/* True if what depends on the changes up to that number need not wait. */
bool mapSavesIsSafe(const mapSaves *s, uint64_t number);
/* A set of SLOT_WORDS words; NULL: it is empty. */
static inline const uint64_t *mapSavesUnsaved(const mapSaves *s) {
    return s->has_unsaved ? s->unsaved : NULL;
}

/* ---- output that waits ---- */

/* The bytes of a link's output that wait, and the changes that they wait for. Output that is added
 * while two marks wait joins the second one: it waits for two saves at most. */
typedef struct saveMarks {
    size_t free; /* bytes at the start of the output that may be sent */
    int count;
    struct {
        size_t end;
        uint64_t number;
    } marks[2];
} saveMarks;

/* All output up to `end` that has no mark depends on what has been taken so far. */
void saveMarksAdd(saveMarks *k, const mapSaves *s, size_t end);
/* The number of bytes at the start of the output that may be sent now. */
size_t saveMarksFree(saveMarks *k, const mapSaves *s);
/* So many of them were sent, and removed from the output. */
void saveMarksSent(saveMarks *k, size_t count);

#endif
