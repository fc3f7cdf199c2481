"""Ten people look at dashboards: dashboards.py HTTP DASHBOARDS CHARTS. Each asks every ten seconds for CHARTS charts of an hour, one item each, over
a connection of its own, until SIGTERM; then one line of JSON says how many charts came, how many failed and how long they took."""
import http.client
import json
import signal
import sys
import threading
import time

REFRESH = 10
address, dashboards, charts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ended = threading.Event()
took, failed, lock = [], [0], threading.Lock()


def ask(c, path):
    c.request("GET", path)
    answer = c.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise OSError(f"{path}: {answer.status} {body[:200]}")
    return body


def dashboard(n):
    c = http.client.HTTPConnection(address, timeout=30)
    items = json.loads(ask(c, f"/api/items?host={hosts[n % len(hosts)]}&limit={charts}"))["items"][:charts]
    ended.wait(REFRESH * n / dashboards)
    while not ended.is_set():
        began = time.time()
        for item in items:
            at = time.time()
            try:
                ask(c, f"/api/chart?items={item['id']}&from={int((at - 3600) * 1000)}&to={int(at * 1000)}&points=600")
            except (OSError, http.client.HTTPException) as e:
                print(e, file=sys.stderr)
                c.close()
                with lock:
                    failed[0] += 1
                continue
            with lock:
                took.append(time.time() - at)
        ended.wait(max(0, REFRESH - (time.time() - began)))


found = json.loads(ask(http.client.HTTPConnection(address, timeout=30), "/api/hosts"))["hosts"]
hosts = [h["id"] for h in found if h["name"].startswith("load-")]
signal.signal(signal.SIGTERM, lambda *_: ended.set())
people = [threading.Thread(target=dashboard, args=(n,)) for n in range(dashboards)]
for p in people:
    p.start()
for p in people:
    p.join()
took.sort()
at = lambda q: round(took[min(len(took) - 1, int(len(took) * q))] * 1000, 1) if took else None
print(json.dumps({"charts": len(took), "failed": failed[0], "p50_ms": at(0.5), "p99_ms": at(0.99)}))
