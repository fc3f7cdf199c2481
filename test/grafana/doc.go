// Package grafana asks a whole program that was fed with data every question of the dashboards in deploy/grafana. It holds tests only.
package grafana
