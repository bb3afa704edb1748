/* SPDX-License-Identifier: GPL-2.0-only */
/* The scenes that are reported, and the bounds that tests hold them to. */
#ifndef SIM_SCENES_H
#define SIM_SCENES_H

#include "scene.h"

/* An ssd as slow as an emulated CPU, and 256 groups in a simulation, need it. */
extern const struct flash_model ssd_60;

extern const struct scene scenes[];
extern const unsigned int scenes_nr;

const struct scene *scene_find(const char *name);

#endif /* SIM_SCENES_H */
