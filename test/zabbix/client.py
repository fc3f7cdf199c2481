"""Does with pyzabbix what scripts do with it: sign in, make a host, read, acknowledge, delete. Prints ok at the end."""
import sys
import time

from pyzabbix import ZabbixAPI, ZabbixAPIException

url, name, password = sys.argv[1:]
z = ZabbixAPI(url, timeout=60)
assert z.api_version() == "7.0.0", z.api_version()

try:
    z.login(name, "wrong password")
    raise SystemExit("a wrong password signs in")
except ZabbixAPIException as e:
    assert "Incorrect user name or password" in str(e), e
try:
    z.auth = ""
    z.host.get()
    raise SystemExit("nobody reads hosts")
except ZabbixAPIException as e:
    assert e.error["code"] == -32602 and e.error["data"] == "Not authorized.", e.error

z.login(name, password)
assert z.is_authenticated

groups = z.hostgroup.get(output=["groupid", "name"], filter={"name": ["Rooms"]})
assert len(groups) == 1, groups
made = z.host.create(host="room 2", groups=[{"groupid": groups[0]["groupid"]}],
                     interfaces=[{"type": 1, "main": 1, "useip": 1, "ip": "127.0.0.1", "dns": "", "port": "10050"}])
hosts = z.host.get(output=["host"], search={"host": "room"}, sortfield="host", selectInterfaces=["ip", "port"])
assert [h["host"] for h in hosts] == ["room 1", "room 2"], hosts
assert hosts[1]["interfaces"][0]["ip"] == "127.0.0.1", hosts
z.host.update(hostid=made["hostids"][0], status=1)
assert z.host.get(hostids=made["hostids"], output=["status"])[0]["status"] == "1"
assert z.host.delete(made["hostids"][0]) == made
assert z.host.get(hostids=made["hostids"], countOutput=True) == "0"

room = hosts[0]["hostid"]
item = z.item.get(hostids=room, filter={"key_": "temperature"}, output="extend")[0]
assert item["lastvalue"] == "42.5" and item["value_type"] == "0", item
history = z.history.get(itemids=[item["itemid"]], history=0, time_from=int(time.time()) - 3600, limit=10)
assert [h["value"] for h in history] == ["42.5"], history

until = time.time() + 60
while True:
    problems = z.problem.get(hostids=[room], output="extend", selectTags="extend")
    if problems or time.time() > until:
        break
    time.sleep(0.1)
assert len(problems) == 1 and problems[0]["severity"] == "4", problems
trigger = z.trigger.get(triggerids=problems[0]["objectid"], output="extend", selectHosts=["host"], expandDescription=1, only_true=1)[0]
assert trigger["value"] == "1" and trigger["hosts"][0]["host"] == "room 1", trigger
z.event.acknowledge(eventids=problems[0]["eventid"], action=6, message="looked at")
event = z.event.get(eventids=problems[0]["eventid"], selectAcknowledges="extend")[0]
assert event["acknowledged"] == "1" and event["acknowledges"][0]["message"] == "looked at", event

event_id = problems[0]["eventid"]
z.event.acknowledge(eventids=[event_id], action=8 + 32, severity=5, suppress_until=int(time.time()) + 3600)
problem = z.problem.get(eventids=event_id, output="extend", selectSuppressionData="extend", suppressed=True)[0]
assert problem["severity"] == "5" and problem["suppressed"] == "1" and problem["suppression_data"][0]["maintenanceid"] == "0", problem
z.event.acknowledge(eventids=event_id, action=16 + 64)
problem = z.problem.get(eventids=event_id, output=["acknowledged", "suppressed"])[0]
assert problem["acknowledged"] == "0" and problem["suppressed"] == "0", problem
try:
    z.event.acknowledge(eventids=event_id, action=1)
    raise SystemExit("a problem is closed although its trigger does not allow it")
except ZabbixAPIException as e:
    assert "trigger does not allow manual closing" in str(e), e

made = z.item.create(hostid=room, name="Humidity", key_="humidity", type=2, value_type=3, units="%", preprocessing=[
    {"type": 1, "params": "100", "error_handler": 0, "error_handler_params": ""}])["itemids"][0]
z.item.update(itemid=made, name="Wet", history="3d")
assert z.item.get(itemids=made, output=["name", "key_", "history"])[0] == {"itemid": made, "name": "Wet", "key_": "humidity", "history": "259200"}
wet = z.trigger.create(description="Too wet", expression="last(/room 1/humidity)>80", priority=2, manual_close=1)["triggerids"][0]
z.trigger.update(triggerid=wet, priority=3, tags=[{"tag": "scope", "value": "air"}])
trigger = z.trigger.get(triggerids=wet, output=["priority", "manual_close"], selectTags="extend", selectItems=["key_"])[0]
assert trigger["priority"] == "3" and trigger["manual_close"] == "1" and trigger["tags"] == [{"tag": "scope", "value": "air"}], trigger
try:
    z.item.create(hostid=room, name="Again", key_="humidity", type=2, value_type=3)
    raise SystemExit("a key is taken twice")
except ZabbixAPIException as e:
    assert "already exists on the host" in str(e), e
assert z.trigger.delete(wet) == {"triggerids": [wet]}
assert z.item.delete(made) == {"itemids": [made]}
assert z.item.get(itemids=[made], countOutput=True) == "0"

scenario = z.httptest.create(hostid=room, name="Door", delay="10m", status=1, steps=[
    {"name": "open", "url": "http://127.0.0.1:1/open", "no": 1}, {"name": "shut", "url": "http://127.0.0.1:1/shut", "no": 2}])["httptestids"][0]
steps = z.httptest.get(httptestids=scenario, output=["name"], selectSteps=["httpstepid", "name", "no"])[0]["steps"]
assert [(s["name"], s["no"]) for s in steps] == [("open", "1"), ("shut", "2")], steps
try:
    z.httptest.update(httptestid=scenario, steps=[{"httpstepid": steps[0]["httpstepid"]}, {"httpstepid": steps[0]["httpstepid"]}])
    raise SystemExit("a step is named twice")
except ZabbixAPIException as e:
    assert "already exists" in str(e), e
z.httptest.update(httptestid=scenario, delay="5m")
assert z.httptest.get(httptestids=[scenario], output=["delay"])[0]["delay"] == "5m"
assert z.httptest.delete(scenario) == {"httptestids": [scenario]}

states = z.valuemap.create(hostid=room, name="Door state", mappings=[{"value": "0", "newvalue": "shut"}, {"value": "1", "newvalue": "open"}])["valuemapids"][0]
z.valuemap.update(valuemapid=states, mappings=[{"type": 5, "newvalue": "unknown"}])
assert z.valuemap.get(valuemapids=states, output=["name"], selectMappings="extend")[0]["mappings"] == [{"type": "5", "value": "", "newvalue": "unknown"}]
assert z.valuemap.delete(states) == {"valuemapids": [states]}

rooms = z.regexp.create(name="Rooms", expressions=[{"expression": "^room", "expression_type": 3, "case_sensitive": 0}])["regexpids"][0]
z.regexp.update(regexpid=rooms, test_string="room 1")
assert z.regexp.get(regexpids=rooms, output=["name", "test_string"])[0]["test_string"] == "room 1"
assert z.regexp.delete(rooms) == {"regexpids": [rooms]}

rule = z.discoveryrule.create(hostid=room, name="Doors", key_="doors", type=2, delay="0", lifetime="3d")["itemids"][0]
door = z.itemprototype.create(ruleid=rule, hostid=room, name="Door {#DOOR}", key_="door[{#DOOR}]", type=2, value_type=3)["itemids"][0]
shut = z.triggerprototype.create(description="{#DOOR} is open", expression="last(/room 1/door[{#DOOR}])>0", priority=2)["triggerids"][0]
graph = z.graphprototype.create(name="Door {#DOOR}", gitems=[{"itemid": door, "color": "00AA00"}])["graphids"][0]
host = z.hostprototype.create(ruleid=rule, host="door {#DOOR}", groupLinks=[{"groupid": groups[0]["groupid"]}])["hostids"][0]
z.itemprototype.update(itemid=door, units="times")
assert z.triggerprototype.update(triggerid=shut, priority=3) == {"triggerids": [shut]}
assert z.graphprototype.update(graphid=graph, graphtype=1) == {"graphids": [graph]}
assert z.hostprototype.update(hostid=host, status=1) == {"hostids": [host]}
found = z.discoveryrule.get(itemids=rule, output=["key_", "lifetime"], selectItems=["units"], selectTriggers=["priority"], selectGraphs=["graphtype"], selectHostPrototypes=["status"])[0]
assert found["items"][0]["units"] == "times" and found["triggers"][0]["priority"] == "3", found
assert found["graphs"][0]["graphtype"] == "1" and found["hostPrototypes"][0]["status"] == "1", found
try:
    z.itemprototype.delete(door, "7")
    raise SystemExit("a prototype that is not there is deleted")
except ZabbixAPIException as e:
    assert e.error["data"] == "No permissions to referred object or it does not exist!", e.error
assert z.itemprototype.get(itemids=door, countOutput=True) == "1"
assert z.hostprototype.delete(host) == {"hostids": [host]}
assert z.graphprototype.delete(graph) == {"graphids": [graph]}
assert z.triggerprototype.delete(shut) == {"triggerids": [shut]}
assert z.itemprototype.delete(door) == {"prototypeids": [door]}
assert z.discoveryrule.delete(rule) == {"ruleids": [rule]}

text = z.configuration.export(format="yaml", options={"hosts": [room]})
assert "room 1" in text
assert z.confimport("yaml", text, {"hosts": {"createMissing": True, "updateExisting": True}}) is True

try:
    z.item.get(nothing=1)
    raise SystemExit("an unknown parameter is passed over")
except ZabbixAPIException as e:
    assert 'unexpected parameter "nothing"' in str(e), e
assert z.user.logout() is True
assert not z.is_authenticated
print("ok")
