package zabbix

import "tidemark/model"

// methods is the table of all methods and of the roles that they need.
var methods = map[string]method{
	"apiinfo.version":          {fn: apiVersion},
	"user.login":               {fn: login},
	"user.checkAuthentication": {fn: checkAuthentication},
	"user.logout":              {role: model.Viewer, fn: logout},
	"user.get":                 {role: model.Viewer, fn: getUsers},
	"hostgroup.get":            {role: model.Viewer, fn: getGroups},
	"host.get":                 {role: model.Viewer, fn: getHosts},
	"hostinterface.get":        {role: model.Viewer, fn: getInterfaces},
	"usermacro.get":            {role: model.Viewer, fn: getMacros},
	"template.get":             {role: model.Viewer, fn: getTemplates},
	"item.get":                 {role: model.Viewer, fn: getItems},
	"valuemap.get":             {role: model.Viewer, fn: getValueMaps},
	"history.get":              {role: model.Viewer, fn: getHistory},
	"trend.get":                {role: model.Viewer, fn: getTrends},
	"trigger.get":              {role: model.Viewer, fn: getTriggers},
	"problem.get":              {role: model.Viewer, fn: getProblems},
	"event.get":                {role: model.Viewer, fn: getEvents},
	"event.acknowledge":        {role: model.Operator, changes: true, fn: acknowledge},
	"host.delete":              {role: model.Editor, changes: true, fn: deleteHosts},
	"host.update":              {role: model.Editor, changes: true, fn: updateHost},
	"host.create":              {role: model.Editor, changes: true, fn: createHosts},
	"configuration.export":     {role: model.Editor, fn: exportConfiguration},
	"configuration.import":     {role: model.Editor, changes: true, fn: importConfiguration},
	// Grafana asks for these lists and wants an answer; there is nothing of the kind here, so they are empty.
	"proxy.get":   {role: model.Viewer, fn: getNothing},
	"service.get": {role: model.Viewer, fn: getNothing},
	"sla.get":     {role: model.Viewer, fn: getNothing},
	"script.get":  {role: model.Viewer, fn: getNothing},
}

// getNothing answers that there are none, whatever is asked for.
func getNothing(c *call) ([]byte, error) {
	if c.flag("countOutput") {
		return []byte(`"0"`), nil
	}
	return []byte("[]"), nil
}
