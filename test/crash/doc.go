// Package crash kills the real binary in the middle of its work and looks for what it promised. It holds tests only.
package crash
