package postgres

import (
	"fmt"
)

// advise says what follows from facts.
func (f *facts) advise() []Advice {
	return []Advice{f.buffers(), f.checkpoints(), f.fullPages(), f.wal(), f.commit(), f.randomReads(), f.tables(), f.packing()}
}

func (f *facts) buffers() Advice {
	a := Advice{Subject: "shared_buffers", Found: sizeText(f.sharedBuffers)}
	const least = 1 << 30
	want := int64(least)
	if f.memory > 0 {
		want = min(max(f.memory/4, 256<<20), 16<<30)
		a.Found += ", the machine has " + sizeText(f.memory)
	}
	if a.Fine = f.sharedBuffers >= want/2; !a.Fine {
		a.Change = fmt.Sprintf("shared_buffers = '%dMB' (a quarter of the memory) and restart PostgreSQL", want>>20)
		a.Gives = "the index pages of the running partition stay in memory; without that each insert reads and evicts pages, which is what slows a big table down first"
	}
	return a
}

func (f *facts) checkpoints() Advice {
	a := Advice{
		Subject: "max_wal_size, checkpoint_timeout",
		Found:   fmt.Sprintf("%s, %d s; %d checkpoints by time, %d because the log was full", sizeText(f.maxWAL), f.checkpointTimeout, f.timed, f.requested),
	}
	often := f.requested > 10 && f.requested > f.timed/4
	if a.Fine = !often && f.maxWAL >= 4<<30 && f.checkpointTimeout >= 900 && f.completion >= 0.89; !a.Fine {
		a.Change = "max_wal_size = '16GB', checkpoint_timeout = '15min', checkpoint_completion_target = 0.9 and reload"
		a.Gives = "each page is written whole to the log once in a checkpoint; with a third as many checkpoints the log of steady inserts shrinks by up to a half. A restart after a crash takes longer, minutes at most"
	}
	return a
}

func (f *facts) fullPages() Advice {
	a := Advice{Subject: "full_page_writes", Found: onOff(f.fullPageWrites), Fine: true}
	switch {
	case f.fileSystem == "zfs" && f.fullPageWrites:
		a.Fine, a.Found = false, "on, and the data lies on ZFS, which never tears a page"
		a.Change = "full_page_writes = off and reload; on the dataset recordsize=16K (8K for many random reads, 32K to 128K for better compression), compression=zstd or lz4, logbias=throughput, atime=off"
		a.Gives = "half of the log or less, and so half of the writes; recordsize near the page size avoids that a page of 8 kB costs the reading and writing of 128 kB"
	case f.fileSystem == "btrfs" && f.fullPageWrites:
		a.Found = "on, and the data lies on Btrfs; leave it on if the folder has nodatacow (chattr +C), which gives up that pages are never torn"
	case !f.fullPageWrites && f.fileSystem == "":
		a.Fine = false
		a.Found = "off, on a file system that is not known to be copy-on-write"
		a.Change = "full_page_writes = on and reload, unless the file system writes pages whole (ZFS)"
		a.Gives = "a power cut cannot leave torn pages, which nothing would mend"
	}
	return a
}

func (f *facts) wal() Advice {
	a := Advice{Subject: "wal_compression", Found: f.walCompression}
	if a.Fine = f.walCompression != "off" || !f.fullPageWrites; !a.Fine {
		a.Change = "wal_compression = 'lz4' (PostgreSQL 15 and newer, else on) and reload"
		a.Gives = "whole pages in the log take a half to a third, for a few percent of processor time"
	}
	return a
}

func (f *facts) commit() Advice {
	a := Advice{Subject: "synchronous_commit", Found: f.synchronous, Fine: true}
	if f.synchronous == "on" {
		a.Found = "on; nobody waits for it, because values are acknowledged by the spool"
	} else if f.synchronous == "off" {
		a.Found = "off"
		a.Fine = false
		a.Change = "synchronous_commit = on: the spool is shortened behind a commit that PostgreSQL may still forget in a crash"
		a.Gives = "no acknowledged value is lost when PostgreSQL crashes; it costs nothing that a sender feels"
	}
	return a
}

func (f *facts) randomReads() Advice {
	a := Advice{Subject: "random_page_cost", Found: fmt.Sprint(f.randomPageCost), Fine: f.randomPageCost <= 2}
	if !a.Fine {
		a.Change = "random_page_cost = 1.1 and reload, if the data lies on SSDs"
		a.Gives = "charts of one item over a long time are read by the primary key and not by scanning partitions"
	}
	return a
}

func (f *facts) tables() Advice {
	a := Advice{Subject: "tables", Found: fmt.Sprintf("%s in all, %s of it in plain tables", sizeText(f.tablesBytes), sizeText(f.plainBytes)), Fine: f.plainBytes < 1<<30}
	if !a.Fine {
		to := "partitions"
		if f.compression {
			to = "timescale"
		}
		a.Change = "tidemark store migrate --to " + to + ", while the server runs"
		a.Gives = "old days are dropped in moments and give their room back, where row deletes take minutes and do not; inserts stay as fast as into a small table"
	}
	return a
}

func (f *facts) packing() Advice {
	a := Advice{Subject: "compression", Fine: true}
	switch {
	case f.modes[Timescale] > 0 && f.compression:
		a.Found = "chunks older than a week are compressed by TimescaleDB " + f.timescale
	case f.modes[Timescale] > 0:
		a.Fine, a.Found = false, "the installed build of TimescaleDB "+f.timescale+" cannot compress (licence apache)"
		a.Change = "install the community build (timescaledb.license = timescale); old chunks are compressed from then on"
		a.Gives = "numbers take a tenth or less of their room"
	case f.tablesBytes >= 20<<30:
		a.Fine, a.Found = false, sizeText(f.tablesBytes)+" without compression"
		a.Change = "create the extension timescaledb (community build) and run tidemark store migrate --to timescale, use a compressing file system, or keep values in the embedded engine (tidemark migrate)"
		a.Gives = "numbers take a tenth or less of their room in compressed chunks, half or less on a file system with zstd, about a hundredth in the embedded engine"
	default:
		a.Found = "none, and " + sizeText(f.tablesBytes) + " need none"
	}
	return a
}

func onOff(v bool) string {
	if v {
		return "on"
	}
	return "off"
}
