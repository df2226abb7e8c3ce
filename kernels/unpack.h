/*
 * The strided copy and the casts, one inline body for host and device, so that
 * both give the same bits. Numbers are elements unless they say bytes.
 */
#ifndef LADE_KERNELS_UNPACK_H
#define LADE_KERNELS_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#endif
