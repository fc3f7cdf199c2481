package zabbix

import "tidemark/model"

// methods is the table of all methods and of the roles that they need.
var methods = map[string]method{
	"apiinfo.version":             {fn: apiVersion},
	"user.login":                  {fn: login},
	"user.checkAuthentication":    {fn: checkAuthentication},
	"user.logout":                 {role: model.Viewer, fn: logout},
	"user.get":                    {role: model.Viewer, fn: getUsers},
	"hostgroup.get":               {role: model.Viewer, fn: getGroups},
	"host.get":                    {role: model.Viewer, fn: getHosts},
	"hostinterface.get":           {role: model.Viewer, fn: getInterfaces},
	"usermacro.get":               {role: model.Viewer, fn: getMacros},
	"template.get":                {role: model.Viewer, fn: getTemplates},
	"item.get":                    {role: model.Viewer, fn: getItems},
	"valuemap.get":                {role: model.Viewer, fn: getValueMaps},
	"history.get":                 {role: model.Viewer, fn: getHistory},
	"trend.get":                   {role: model.Viewer, fn: getTrends},
	"trigger.get":                 {role: model.Viewer, fn: getTriggers},
	"problem.get":                 {role: model.Viewer, fn: getProblems},
	"event.get":                   {role: model.Viewer, fn: getEvents},
	"event.acknowledge":           {role: model.Operator, changes: true, fn: acknowledge},
	"host.delete":                 {role: model.Editor, changes: true, fn: deleteHosts},
	"host.update":                 {role: model.Editor, changes: true, fn: updateHosts},
	"host.create":                 {role: model.Editor, changes: true, fn: createHosts},
	"configuration.export":        {role: model.Editor, fn: exportConfiguration},
	"configuration.import":        {role: model.Editor, changes: true, fn: importConfiguration},
	"configuration.importcompare": {role: model.Editor, fn: compareImport},
	"host.massadd":                {role: model.Editor, changes: true, fn: massAddHosts},
	"host.massremove":             {role: model.Editor, changes: true, fn: massRemoveHosts},
	"host.massupdate":             {role: model.Editor, changes: true, fn: massUpdateHosts},
	"hostgroup.create":            {role: model.Editor, changes: true, fn: createGroups},
	"hostgroup.massadd":           {role: model.Editor, changes: true, fn: massAddGroups},
	"hostgroup.massremove":        {role: model.Editor, changes: true, fn: massRemoveGroups},
	"hostinterface.create":        {role: model.Editor, changes: true, fn: createInterfaces},
	"hostinterface.update":        {role: model.Editor, changes: true, fn: updateInterfaces},
	"hostinterface.delete":        {role: model.Editor, changes: true, fn: deleteInterfaces},
	"usermacro.create":            {role: model.Editor, changes: true, fn: createMacros},
	"usermacro.update":            {role: model.Editor, changes: true, fn: updateMacros},
	"usermacro.delete":            {role: model.Editor, changes: true, fn: deleteMacros},
	"template.create":             {role: model.Editor, changes: true, fn: createTemplates},
	"template.update":             {role: model.Editor, changes: true, fn: updateTemplates},
	"template.delete":             {role: model.Editor, changes: true, fn: deleteTemplates},
	"templategroup.create":        {role: model.Editor, changes: true, fn: createTemplateGroups},
	"itemprototype.get":           {role: model.Viewer, fn: getItemPrototypes},
	"triggerprototype.get":        {role: model.Viewer, fn: getTriggerPrototypes},
	"user.create":                 {role: model.Administrator, changes: true, fn: createUsers},
	"user.update":                 {role: model.Administrator, changes: true, fn: updateUsers},
	"user.delete":                 {role: model.Administrator, changes: true, fn: deleteUsers},
	"usergroup.get":               {role: model.Viewer, fn: getUserGroups},
	"usergroup.create":            {role: model.Administrator, changes: true, fn: createUserGroups},
	"usergroup.update":            {role: model.Administrator, changes: true, fn: updateUserGroups},
	"usergroup.delete":            {role: model.Administrator, changes: true, fn: deleteUserGroups},
	"role.get":                    {role: model.Viewer, fn: getRoles},
	"token.get":                   {role: model.Viewer, fn: getTokens},
	"token.create":                {role: model.Viewer, changes: true, fn: createTokens},
	"token.update":                {role: model.Viewer, changes: true, fn: updateTokens},
	"token.generate":              {role: model.Viewer, changes: true, fn: generateTokens},
	"token.delete":                {role: model.Viewer, changes: true, fn: deleteTokens},
	"maintenance.get":             {role: model.Viewer, fn: getMaintenances},
	"maintenance.create":          {role: model.Editor, changes: true, fn: createMaintenances},
	"maintenance.update":          {role: model.Editor, changes: true, fn: updateMaintenances},
	"maintenance.delete":          {role: model.Editor, changes: true, fn: deleteMaintenances},
	"templategroup.get":           {role: model.Viewer, fn: getTemplateGroups},
	"proxy.get":                   {role: model.Viewer, fn: getProxies},
	"action.get":                  {role: model.Editor, fn: getActions},
	"mediatype.get":               {role: model.Editor, fn: getMediaTypes},
	"graph.get":                   {role: model.Viewer, fn: getGraphs},
	"discoveryrule.get":           {role: model.Viewer, fn: getRules},
	// Grafana asks for these lists and wants an answer; there is nothing of the kind here, so they are empty.
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
