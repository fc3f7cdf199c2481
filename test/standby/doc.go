// Package standby runs pairs and fleets of real servers, kills and replaces them under load, and looks for what they promised. It holds tests only.
package standby
