package ipmi

import "fmt"

// typeNames are the types of sensors (42.2), in lower case as Zabbix has them.
var typeNames = []string{
	"", "temperature", "voltage", "current", "fan", "physical_security", "platform_security", "processor", "power_supply", "power_unit", "cooling_device", "other_units_based_sensor",
	"memory", "drive_slot", "power_memory_resize", "system_firmware_progress", "event_logging_disabled", "watchdog_1", "system_event", "critical_interrupt", "button", "module_board",
	"microcontroller_coprocessor", "add_in_card", "chassis", "chip_set", "other_fru", "cable_interconnect", "terminator", "system_boot_initiated", "boot_error", "os_boot", "os_critical_stop",
	"slot_connector", "system_acpi_power_state", "watchdog_2", "platform_alert", "entity_presence", "monitor_asic_ic", "lan", "management_subsystem_health", "battery", "session_audit",
	"version_change", "fru_state",
}

// TypeName is what a sensor measures.
func (r *Record) TypeName() string {
	if int(r.Type) < len(typeNames) && r.Type > 0 {
		return typeNames[r.Type]
	}
	return "oem"
}

// readingNames are the ways of reading (42.1).
var readingNames = map[byte]string{
	0x01: "threshold", 0x02: "discrete_usage", 0x03: "discrete_state", 0x04: "discrete_predictive_failure", 0x05: "discrete_limit_exceeded", 0x06: "discrete_performance_met", 0x07: "discrete_severity",
	0x08: "discrete_device_presence", 0x09: "discrete_device_enable", 0x0a: "discrete_availability", 0x0b: "discrete_redundancy", 0x0c: "discrete_acpi_power", 0x6f: "sensor_specific",
}

// ReadingName is how a sensor is read.
func (r *Record) ReadingName() string {
	if name := readingNames[r.Reading]; name != "" {
		return name
	}
	return "oem"
}

// Name is the sensor with the part of the machine that it is of: "(7.1).CPU Temp".
func (r *Record) Name() string { return fmt.Sprintf("(%d.%d).%s", r.Entity, r.Instance, r.ID) }

// unitNames are the units of values (43.17).
var unitNames = []string{
	"", "C", "F", "K", "V", "A", "W", "J", "coulombs", "VA", "nits", "lumens", "lux", "candelas", "kPa", "PSI", "newtons", "CFM", "RPM", "Hz", "us", "ms", "s", "min", "h", "d", "weeks", "mil", "inches", "ft",
	"cubic inches", "cubic feet", "mm", "cm", "m", "cubic cm", "cubic m", "l", "fluid ounces", "radians", "steradians", "revolutions", "cycles", "gravities", "ounces", "pounds", "foot pounds",
	"ounce inches", "gauss", "gilberts", "H", "mH", "F", "uF", "ohms", "S", "moles", "Bq", "ppm", "", "dB", "dBA", "dBC", "Gy", "Sv", "K color temperature", "bits", "Kbit", "Mbit", "Gbit", "B", "KB", "MB", "GB",
	"words", "dwords", "qwords", "lines", "hits", "misses", "retries", "resets", "overruns", "underruns", "collisions", "packets", "messages", "characters", "errors", "correctable errors", "uncorrectable errors", "fatal errors", "g",
}

var rateNames = []string{"", "/us", "/ms", "/s", "/min", "/h", "/d", ""}

// units are those of a sensor: its base unit, what that is multiplied or divided with, and a rate.
func units(flags, base, modifier byte) string {
	name := func(n byte) string {
		if int(n) < len(unitNames) {
			return unitNames[n]
		}
		return ""
	}
	out := name(base)
	switch flags >> 1 & 3 {
	case 1:
		out += "/" + name(modifier)
	case 2:
		out += "*" + name(modifier)
	}
	if flags&1 != 0 {
		if out == "" {
			return "%"
		}
		out = "% " + out
	}
	return out + rateNames[flags>>3&7]
}

// thresholdNames are the texts of a State of a sensor with thresholds, the worst first.
var thresholdNames = []struct {
	bit  int
	text string
}{
	{UpperNonRecoverable, "upper non-recoverable"},
	{LowerNonRecoverable, "lower non-recoverable"},
	{UpperCritical, "upper critical"},
	{LowerCritical, "lower critical"},
	{UpperNonCritical, "upper non-critical"},
	{LowerNonCritical, "lower non-critical"},
}

// genericStates are the texts of the states of ways of reading that all types have in common (42.2, table 42-2).
var genericStates = map[byte][]string{
	0x02: {"transition to idle", "transition to active", "transition to busy"},
	0x03: {"state deasserted", "state asserted"},
	0x04: {"predictive failure deasserted", "predictive failure asserted"},
	0x05: {"limit not exceeded", "limit exceeded"},
	0x06: {"performance met", "performance lags"},
	0x07: {"ok", "non-critical from ok", "critical from less severe", "non-recoverable from less severe", "non-critical from more severe", "critical from non-recoverable", "non-recoverable", "monitor", "informational"},
	0x08: {"absent", "present"},
	0x09: {"disabled", "enabled"},
	0x0a: {"running", "in test", "power off", "on line", "off line", "off duty", "degraded", "power save", "install error"},
	0x0b: {"fully redundant", "redundancy lost", "redundancy degraded", "non-redundant, sufficient from redundant", "non-redundant, sufficient from insufficient", "non-redundant, insufficient", "redundancy degraded from fully redundant", "redundancy degraded from non-redundant"},
	0x0c: {"D0", "D1", "D2", "D3"},
}

// ownStates are those of types whose reading is sensor specific (42.2, table 42-3), of the types that machines commonly have.
var ownStates = map[byte][]string{
	0x05: {"general chassis intrusion", "drive bay intrusion", "I/O card area intrusion", "processor area intrusion", "LAN leash lost", "unauthorized dock", "fan area intrusion"},
	0x07: {"IERR", "thermal trip", "FRB1/BIST failure", "FRB2 failure", "FRB3 failure", "configuration error", "SM BIOS uncorrectable error", "presence detected", "disabled", "terminator presence detected", "automatically throttled", "machine check exception", "correctable machine check error"},
	0x08: {"presence detected", "failure detected", "predictive failure", "input lost", "input lost or out of range", "input out of range, present", "configuration error", "inactive"},
	0x09: {"power off", "power cycle", "240VA power down", "interlock power down", "AC lost", "soft power control failure", "failure detected", "predictive failure"},
	0x0c: {"correctable ECC", "uncorrectable ECC", "parity", "memory scrub failed", "memory device disabled", "correctable ECC logging limit reached", "presence detected", "configuration error", "spare", "throttled", "critical overtemperature"},
	0x0d: {"drive present", "drive fault", "predictive failure", "hot spare", "parity check in progress", "in critical array", "in failed array", "rebuild in progress", "rebuild aborted"},
	0x12: {"system reconfigured", "OEM system boot event", "undetermined system hardware failure", "entry added to auxiliary log", "PEF action", "timestamp clock sync"},
	0x14: {"power button pressed", "sleep button pressed", "reset button pressed", "FRU latch open", "FRU service request"},
	0x1b: {"cable connected", "configuration error"},
	0x21: {"fault status asserted", "identify status asserted", "device installed", "ready for installation", "ready for removal", "slot power off", "removal requested", "interlock asserted", "slot disabled", "slot holds spare device"},
	0x22: {"S0/G0 working", "S1 sleeping", "S2 sleeping", "S3 sleeping", "S4 suspended to disk", "S5/G2 soft off", "S4/S5 soft off", "G3 mechanical off", "sleeping in S1, S2 or S3", "G1 sleeping", "S5 entered by override", "legacy on", "legacy off", "unknown"},
	0x23: {"timer expired", "hard reset", "power down", "power cycle", "reserved", "reserved", "reserved", "reserved", "timer interrupt"},
	0x25: {"present", "absent", "disabled"},
	0x28: {"sensor access degraded", "controller access degraded", "controller off line", "controller unavailable", "sensor failure", "FRU failure"},
	0x29: {"battery low", "battery failed", "battery presence detected"},
	0x2b: {"hardware change detected", "firmware change detected", "hardware incompatibility", "firmware incompatibility", "invalid hardware", "invalid firmware", "hardware change successful", "firmware change successful"},
	0x2c: {"not installed", "inactive", "activation requested", "activation in progress", "active", "deactivation requested", "deactivation in progress", "communication lost"},
}

// Texts are what the states of a sensor mean.
func (r *Record) Texts(bits uint16) []string {
	var out []string
	if r.Threshold() {
		for _, t := range thresholdNames {
			if bits&(1<<t.bit) != 0 {
				out = append(out, t.text)
			}
		}
		if len(out) == 0 {
			return []string{"ok"}
		}
		return out[:1] // the worst; those before it are passed too
	}
	names := genericStates[r.Reading]
	if r.Reading == 0x6f {
		names = ownStates[r.Type]
	}
	for i := range 15 {
		if bits&(1<<i) == 0 {
			continue
		}
		if i < len(names) {
			out = append(out, names[i])
		} else {
			out = append(out, fmt.Sprintf("state %d", i))
		}
	}
	return out
}
