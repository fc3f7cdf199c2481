// The work of the Node.js driver: node client.mjs URI ROUNDS. Prints as JSON what the driver told of its commands.
import { MongoClient } from "mongodb";

const [uri, rounds] = [process.argv[2], Number(process.argv[3])];
const client = new MongoClient(uri, { monitorCommands: true, appName: "node-shop", maxPoolSize: 3 });
const told = new Map();
const open = new Map();

client.on("commandStarted", (e) => {
  const collection = e.command[e.commandName === "getMore" ? "collection" : e.commandName];
  const namespace = typeof collection === "string" ? `${e.databaseName}.${collection}` : e.databaseName;
  open.set(e.requestId, { namespace, command: e.commandName, at: performance.now() });
});
const end = (e, failed) => {
  const { namespace, command, at } = open.get(e.requestId);
  const name = `${namespace} ${command}`;
  const t = told.get(name) ?? { namespace, command, requests: 0, errors: 0, millis: [] };
  told.set(name, t);
  t.requests++;
  if (failed) t.errors++;
  t.millis.push(performance.now() - at);
};
client.on("commandSucceeded", (e) => end(e, (e.reply?.writeErrors?.length ?? 0) > 0));
client.on("commandFailed", (e) => end(e, true));

await client.connect();
const users = client.db("nodeshop").collection("users");
const carts = client.db("nodeshop").collection("carts");
await carts.insertMany(Array.from({ length: 250 }, (_, i) => ({ n: i })));
for (let i = 0; i < rounds; i++) {
  await users.insertOne({ _id: i, name: `user ${i}`, age: i % 90 });
  await users.findOne({ name: `user ${i}` });
  await users.updateOne({ _id: i }, { $set: { age: i } });
  await users.find({ age: { $gte: i } }).sort({ age: 1 }).limit(5).toArray();
  await users.aggregate([{ $match: { age: i } }, { $count: "n" }]).toArray();
  if (i % 10 === 0) await users.insertOne({ _id: i }).catch(() => {});
}
await carts.find({}).batchSize(100).toArray();
await Promise.all(Array.from({ length: 20 }, (_, i) => users.countDocuments({ age: i })));
await users.deleteMany({ age: { $gt: 5 } });
await client.close();
console.log(JSON.stringify([...told.values()]));
