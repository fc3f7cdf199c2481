package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// put writes a file below a folder.
func put(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func mountsOf(t *testing.T, dir, kind, source string) string {
	t.Helper()
	at := strings.ReplaceAll(dir, " ", `\040`)
	return put(t, t.TempDir(), "mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\nnonsense\n36 22 0:31 / "+at+" rw,noatime shared:1 - "+kind+" "+source+" rw\n", 0o644)
}

func TestPools_zfs(t *testing.T) {
	data := filepath.Join(t.TempDir(), "my data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	mounts := mountsOf(t, data, "zfs", "tank/values")
	tool := func(script string) string { return put(t, t.TempDir(), "zpool", "#!/bin/sh\n"+script+"\n", 0o755) }
	good := pools{mounts: mounts, zpool: tool(`[ "$*" = "list -H -p -o name,size,allocated -- tank" ] && printf 'tank\t1000\t850\n'`)}
	if got, err := good.of(data, "zfs"); err != nil || got == nil || *got != (Pool{Name: "tank", TotalBytes: 1000, UsedBytes: 850, UsedPercent: 85}) {
		t.Errorf("found %+v, %v", got, err)
	}
	for script, want := range map[string]string{
		"echo 'no such pool' >&2; exit 1": "no such pool",
		"echo tank many few":              "expected two sizes",
		"echo other 1 2":                  "expected name, size",
		"true":                            "expected name, size",
	} {
		if got, err := (pools{mounts: mounts, zpool: tool(script)}).of(data, "zfs"); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %+v, %v, expected an error with %q", script, got, err, want)
		}
	}
	if got, err := (pools{mounts: mounts}).of(data, "zfs"); got != nil || err != nil {
		t.Errorf("without the tool %+v, %v", got, err)
	}
	if got, err := good.of(data, "ext4"); got != nil || err != nil {
		t.Errorf("on ext4 %+v, %v", got, err)
	}
}

func TestPools_btrfs(t *testing.T) {
	data, sys := t.TempDir(), t.TempDir()
	p := pools{mounts: mountsOf(t, data, "btrfs", "/dev/nosuch9"), btrfs: sys}
	if got, err := p.of(data, "btrfs"); got != nil || err != nil {
		t.Errorf("without sysfs %+v, %v", got, err)
	}
	const sectors = 20 << 21 // 20 GiB
	put(t, sys, "0a1b/devices/nosuch9/size", "20971520\n", 0o644)
	put(t, sys, "0a1b/devices/nosuch8/size", "20971520\n", 0o644)
	put(t, sys, "ffff/devices/other/size", "1\n", 0o644)
	allocation := func(metadataTotal string) {
		for name, text := range map[string]string{
			"data/disk_used": "10737418240", "data/disk_total": "17179869184", "data/bytes_used": "10737418240", "data/total_bytes": "17179869184",
			"metadata/disk_used": "1073741824", "metadata/disk_total": metadataTotal, "metadata/bytes_used": "536870912", "metadata/total_bytes": "563714457",
			"system/disk_used": "0", "system/disk_total": "0", "system/bytes_used": "0", "system/total_bytes": "0",
		} {
			put(t, sys, "0a1b/allocation/"+name, text+"\n", 0o644)
		}
	}
	allocation("1127428915")
	got, err := p.of(data, "btrfs")
	if err != nil || got == nil || got.Name != "0a1b" || got.TotalBytes != sectors*512 || got.UsedBytes != 11<<30 || got.UsedPercent != 55 {
		t.Errorf("found %+v, %v", got, err)
	}
	allocation("3758096384") // nothing is left unallocated, so metadata cannot grow
	if got, err = p.of(data, "btrfs"); err != nil || got.UsedPercent < 95 || got.UsedPercent > 96 {
		t.Errorf("with full metadata %+v, %v", got, err)
	}
	put(t, sys, "0a1b/allocation/system/disk_used", "many\n", 0o644)
	if got, err = p.of(data, "btrfs"); got != nil || err == nil || !strings.Contains(err.Error(), "expected a size") {
		t.Errorf("with nonsense %+v, %v", got, err)
	}
}
