package zabbixdb

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// localTime is the form of times in alerting files.
const localTime = "2006-01-02T15:04"

var weekdays = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// maintenances reads those that are not over.
func (a *alerts) maintenances(ctx context.Context) ([]object, error) {
	var parts [4]map[int64][]row
	for i, query := range []string{
		"SELECT w.maintenanceid, t.* FROM maintenances_windows w JOIN timeperiods t ON t.timeperiodid = w.timeperiodid ORDER BY t.timeperiodid",
		"SELECT * FROM maintenances_hosts ORDER BY maintenance_hostid",
		"SELECT * FROM maintenances_groups ORDER BY maintenance_groupid",
		"SELECT * FROM maintenance_tag ORDER BY maintenancetagid",
	} {
		var err error
		if parts[i], err = a.grouped(ctx, "maintenanceid", query); err != nil {
			return nil, err
		}
	}
	now := time.Now().Unix()
	var list []object
	return list, a.each(ctx, "SELECT * FROM maintenances ORDER BY maintenanceid", func(r row) error {
		id := r.id("maintenanceid")
		if r.id("active_till") < now {
			a.leave("maintenances", 1, "they are over")
			return nil
		}
		o := object{"name": r["name"], "from": moment(r.id("active_since")), "to": moment(r.id("active_till"))}
		o.put("description", r["description"], "")
		if r["maintenance_type"] == "1" {
			o["no_data"] = true
		}
		var periods, tags []object
		for _, p := range parts[0][id] {
			periods = append(periods, period(p))
		}
		o["periods"] = periods
		o.names("hosts", parts[1][id], "hostid", a.hosts)
		o.names("groups", parts[2][id], "groupid", a.groups)
		once := make(map[string]bool)
		for _, t := range parts[3][id] {
			tag := object{"tag": t["tag"], "operator": "contains"}
			if orZero(t["operator"]) == "0" {
				tag["operator"] = "equals"
			}
			tag.put("value", t["value"], "")
			if once[t["tag"]] && r["tags_evaltype"] != "2" {
				a.out.remark("maintenance "+r["name"], "the tag "+t["tag"]+" is named twice, of which one is enough in Zabbix; here all tags must be there. Make a maintenance for each")
			}
			once[t["tag"]] = true
			tags = append(tags, tag)
		}
		o.putList("tags", tags)
		if r["tags_evaltype"] == "2" {
			o["any_tag"] = true
		}
		list = append(list, o)
		return nil
	})
}

// names sets a list of names.
func (o object) names(field string, rows []row, column string, names map[int64]string) {
	var list []string
	for _, r := range rows {
		if name := names[r.id(column)]; name != "" {
			list = append(list, name)
		}
	}
	if len(list) > 0 {
		o[field] = list
	}
}

// moment is a time in the zone of this machine, which should be that of the server.
func moment(seconds int64) string { return time.Unix(seconds, 0).Format(localTime) }

// period makes one period of a maintenance.
func period(r row) object {
	o := object{"for": orZero(r["period"]) + "s"}
	start := r.num("start_time")
	at := fmt.Sprintf("%02d:%02d", start/3600, start/60%60)
	every := max(r.num("every"), 1)
	var days []string
	for i, name := range weekdays {
		if r.num("dayofweek")&(1<<i) != 0 {
			days = append(days, name)
		}
	}
	switch orZero(r["timeperiod_type"]) {
	case "0":
		o["every"], o["start"] = "once", moment(r.id("start_date"))
	case "2":
		o["every"], o["at"], o["interval"] = "day", at, every
	case "3":
		o["every"], o["at"], o["interval"], o["days"] = "week", at, every, days
	default:
		o["every"], o["at"] = "month", at
		var months []int
		for i := range 12 {
			if r.num("month")&(1<<i) != 0 {
				months = append(months, i+1)
			}
		}
		o["months"] = months
		if day, _ := strconv.Atoi(r["day"]); day > 0 {
			o["day_of_month"] = day
		} else {
			o["days"], o["weeks"] = days, []int{every}
		}
	}
	return o
}
