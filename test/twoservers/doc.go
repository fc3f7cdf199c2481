// Package twoservers has the tests of two servers that share one PostgreSQL database: one works, the other takes over when it is killed, stopped, cut off or asked
// to. What was acknowledged is there exactly once, and each problem is told once.
package twoservers
