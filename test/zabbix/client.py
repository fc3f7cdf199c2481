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
