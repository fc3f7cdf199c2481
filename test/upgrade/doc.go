// Package upgrade opens data folders that earlier versions wrote. It holds tests only.
package upgrade
