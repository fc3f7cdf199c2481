package standby

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// An epoch is a generation, which each promotion raises, and 32 random bits. So two standbys that are promoted while neither knows of the other get
// different epochs of one generation, and wherever the two meet the higher one wins. Epochs below firstRandom are plain numbers: that of a new
// cluster, 1, and those of versions before 0.1.0's end.
const firstRandom = 1 << 32

// generation is how often there was a promotion, and one.
func generation(epoch uint64) uint64 {
	if epoch < firstRandom {
		return epoch
	}
	return epoch>>32 + 1
}

// nextEpoch returns an epoch of the next generation.
func nextEpoch(epoch uint64) uint64 {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return generation(epoch)<<32 | uint64(binary.LittleEndian.Uint32(random[:]))
}

// EpochText is an epoch as people read it: its generation, and behind it what tells two of one generation apart.
func EpochText(epoch uint64) string {
	if epoch < firstRandom {
		return fmt.Sprint(epoch)
	}
	return fmt.Sprintf("%d-%08x", generation(epoch), uint32(epoch))
}
