package reactor

import (
	"encoding/binary"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Alarm goes off at a time that is set, and wakes the goroutine that waits for it.
//
// It is a timer of the system. Those of Go's runtime wake two threads when the process is idle otherwise, the one that runs the goroutine and the
// runtime's monitor, and each of them twice, because the wait for them is counted in milliseconds: at the pace of a poller's ticks that costs more
// than the checks of a tick. When the system has no more timers to give, it is one of the runtime all the same.
type Alarm struct {
	// fd is that of file, which the runtime waits for; raw reads it.
	fd   int
	file *os.File
	raw  syscall.RawConn

	// timer, interval and closed are there instead of file.
	timer    *time.Timer
	interval time.Duration
	closed   chan struct{}
	close    func()
}

// NewAlarm returns an alarm that is not set.
func NewAlarm() *Alarm {
	if fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err == nil {
		a := &Alarm{file: os.NewFile(uintptr(fd), "timer"), fd: fd}
		if a.raw, err = a.file.SyscallConn(); err == nil {
			return a
		}
		_ = a.file.Close() // it was not used
	}
	return newRuntimeAlarm()
}

func newRuntimeAlarm() *Alarm {
	a := &Alarm{timer: time.NewTimer(time.Hour), closed: make(chan struct{})}
	a.timer.Stop()
	a.close = sync.OnceFunc(func() { close(a.closed) })
	return a
}

// Set has the alarm go off when so much time is over, at once for none. What was set before is forgotten. It must not be called during or after
// Close.
func (a *Alarm) Set(after time.Duration) {
	if a.timer != nil {
		a.timer.Reset(after)
		return
	}
	a.arm(after, 0)
}

func (a *Alarm) arm(after, interval time.Duration) {
	spec := unix.ItimerSpec{Interval: unix.NsecToTimespec(int64(interval)), Value: unix.NsecToTimespec(int64(max(after, 1)))}
	_, _, _ = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(a.fd), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0) // any time is good
}

// repeat has the alarm go off in each interval. Nobody waits yet, and Set is not used.
func (a *Alarm) repeat(interval time.Duration) {
	if a.timer != nil {
		a.interval = interval
		a.timer.Reset(interval)
		return
	}
	a.arm(interval, interval)
}

// Wait waits until the alarm has gone off; false when it is closed. One goroutine may wait.
func (a *Alarm) Wait() bool {
	if a.timer != nil {
		return a.waitForTimer()
	}
	var times [8]byte
	return a.raw.Read(func(uintptr) bool {
		n, _, err := unix.RawSyscall(unix.SYS_READ, uintptr(a.fd), uintptr(unsafe.Pointer(&times)), unsafe.Sizeof(times))
		return err == 0 && n == uintptr(len(times)) && binary.NativeEndian.Uint64(times[:]) > 0
	}) == nil
}

func (a *Alarm) waitForTimer() bool {
	select {
	case <-a.closed:
		return false
	default:
	}
	select {
	case <-a.timer.C:
		if a.interval > 0 {
			a.timer.Reset(a.interval)
		}
		return true
	case <-a.closed:
		return false
	}
}

// Close ends a Wait. A second call does nothing.
func (a *Alarm) Close() {
	if a.timer != nil {
		a.timer.Stop()
		a.close()
		return
	}
	_ = a.file.Close() // there is nothing to be lost
}

// Ticker is an Alarm that goes off again and again.
type Ticker struct{ alarm *Alarm }

// NewTicker returns a ticker with this time between two ticks, which is more than none.
func NewTicker(interval time.Duration) *Ticker {
	t := &Ticker{NewAlarm()}
	t.alarm.repeat(interval)
	return t
}

// Wait waits for the next tick; those that nobody waited for are left out. It returns false when the ticker is stopped.
func (t *Ticker) Wait() bool { return t.alarm.Wait() }

// Stop ends a Wait. A second call does nothing.
func (t *Ticker) Stop() { t.alarm.Close() }
