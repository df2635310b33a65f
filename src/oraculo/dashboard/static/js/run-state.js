// The journal of a run and what it folds to. The rows are those of dashboard/timeline.py; the rules are those of
// core/state.py, and a test holds the two together.
export const STATUS = ["pendente", "em_execucao", "concluida", "parcial", "erro", "timeout", "cancelada", "ignorada"];
export const WAITING = 0, OWED = 1, RUNNING = 2, BACKOFF = 3, CLOSED = 4, GROWN = 5, HELD = 6, JUDGED = 7;
const CODE = Object.fromEntries(STATUS.map((name, number) => [name, number]));
const MOST_STEPS = 1000; // that are folded again for a step back
const [PENDENTE, EM_EXECUCAO, CONCLUIDA] = [0, 1, 2];

export function each(ranges, act) {
  for (let at = 0; at < ranges.length; at += 2) {
    const end = ranges[at] + ranges[at + 1];
    for (let position = ranges[at]; position < end; position++) act(position);
  }
}

/** The run as it stands after some number of events. */
export class RunState {
  constructor(total, planned, timeouts) {
    this.status = new Uint8Array(total);
    this.phase = new Uint8Array(total);
    this.attempt = new Uint16Array(total);
    this.due = new Float64Array(total); // end of the running attempt, or beginning of the next one
    this.failure = new Int32Array(total).fill(-1); // index of the row that says how the last attempt failed
    this.gates = new Map();
    this.timeouts = timeouts;
    this.version = 0;
    this.at = 0;
    this.run = PENDENTE;
    this.total = planned; // tickets so far: items, rounds and those that undo others come later, behind them
    this.open = planned;
    this.endedAt = null;
    this.approval = null; // asked, given or refused
    this.approver = this.approvalReason = "";
    this.paused = null; // since when, by whom and why
    this.moved = 0; // how long it was paused so far
    this.instants = new Set(); // waits that end at an instant, which no pause moves
  }

  copy() {
    const copy = Object.assign(new RunState(0, 0, this.timeouts), this);
    for (const name of ["status", "phase", "attempt", "due", "failure"]) copy[name] = this[name].slice();
    copy.gates = new Map(this.gates);
    copy.instants = new Set(this.instants);
    return copy;
  }

  apply(row, index) {
    const [seq, at, letter] = row;
    this.version = seq;
    this.at = at;
    switch (letter) {
      case "d":
        each(row[3], (position) => {
          this.phase[position] = OWED;
          this.status[position] = PENDENTE;
          this.attempt[position] = row[4];
        });
        break;
      case "c":
        each(row[3], (position) => {
          this.phase[position] = RUNNING;
          this.status[position] = EM_EXECUCAO;
          this.due[position] = (this.paused?.at ?? at) + this.timeouts[position];
        });
        this.run = EM_EXECUCAO;
        break;
      case "k":
        this.#close(row[3], CONCLUIDA);
        break;
      case "j":
        each(row[3], (position) => {
          this.attempt[position] = 1;
          this.#close(position, CONCLUIDA);
        });
        break;
      case "C":
        this.#close(row[3], CODE[row[5]]);
        break;
      case "a":
        this.phase[row[3]] = BACKOFF;
        this.status[row[3]] = PENDENTE;
        this.due[row[3]] = row[6];
        this.failure[row[3]] = index;
        break;
      case "f":
        this.failure[row[3]] = index;
        this.#close(row[3], CODE[row[5]]);
        break;
      case "r":
        this.phase[row[3]] = OWED;
        this.status[row[3]] = PENDENTE;
        this.attempt[row[3]] = row[4];
        this.open += 1;
        break;
      case "W":
        this.status[row[3]] = PENDENTE;
        this.failure[row[3]] = index;
        if (row[6] === null) {
          this.phase[row[3]] = OWED;
          this.attempt[row[3]] = row[4] + 1;
        } else {
          this.phase[row[3]] = BACKOFF;
          this.due[row[3]] = (this.paused?.at ?? at) + row[6];
        }
        break;
      case "x":
        each(row[3], (position) => {
          this.failure[position] = index;
          this.#close(position, CODE[row[4]]);
        });
        break;
      case "g":
        this.gates.set(row[3], Boolean(row[4]));
        break;
      case "h":
        this.phase[row[3]] = HELD;
        this.status[row[3]] = EM_EXECUCAO;
        this.due[row[3]] = row[4] ?? Infinity;
        if (row[5]) this.instants.add(row[3]);
        this.run = EM_EXECUCAO;
        break;
      case "t":
        if (row[6]) this.failure[row[3]] = index;
        this.#close(row[3], CODE[row[5]]);
        break;
      case "p":
        if (typeof row[6] === "number") break; // of a task, which ends with it
        [this.approval, this.approver, this.approvalReason] = row.slice(3);
        break;
      case "z":
        if (row[3]) this.paused = { at, reason: row[4], actor: row[5]?.ator ?? null };
        else this.#goOn(at);
        break;
      case "P":
        each(row[4], (position) => {
          this.phase[position] = JUDGED;
        });
        break;
      case "A":
        this.phase[row[3]] = JUDGED;
        this.status[row[3]] = EM_EXECUCAO;
        break;
      case "u":
        this.total += row[3].length;
        this.open += row[3].length;
        break;
      case "b":
        if (this.phase[row[3]] === WAITING) {
          this.phase[row[3]] = GROWN;
          this.status[row[3]] = this.run = EM_EXECUCAO;
          this.attempt[row[3]] = 1;
        }
        this.total += row[5];
        this.open += row[5];
        if (row[9]) {
          this.phase[row[4]] = BACKOFF; // a round of a loop, behind a pause
          this.due[row[4]] = row[9];
        }
        break;
      case "m":
      case "L":
        if (row[5]) this.failure[row[3]] = index;
        this.#close(row[3], CODE[row[4]]);
        break;
      case "e":
        this.run = CODE[row[3]];
        this.endedAt = at;
        this.paused = null;
        break;
    }
  }

  /** Deadlines have moved by the pause. */
  #goOn(at) {
    const length = at - this.paused.at;
    this.moved += length;
    this.paused = null;
    for (let position = 0; position < this.total; position++) if (!this.instants.has(position)) this.due[position] += length;
  }

  #close(position, status) {
    this.phase[position] = CLOSED;
    this.status[position] = status;
    this.open -= 1;
    if (this.run === PENDENTE) this.run = EM_EXECUCAO;
  }
}

/** When a worker began an attempt that took it so many milliseconds; a row may have what caused it in their place. */
function worked(attempt, at, took) {
  return typeof took === "number" ? { began: Math.max(at - took, attempt?.sent ?? attempt?.released ?? 0) } : {};
}

/** Every row so far, and the state after any of them. */
export class RunStore {
  constructor(document) {
    this.rows = [];
    this.queues = [];
    this.timeouts = [];
    this.start = document.start;
    this.deadline = document.deadline === null ? null : document.deadline - document.start;
    for (const kind of document.tasks.of) {
      const [queue, , timeout] = document.tasks.kinds[kind];
      this.queues.push(queue);
      this.timeouts.push(timeout);
    }
    this.names = document.tasks.names;
    this.planned = this.queues.length;
    this.undoes = []; // which ticket each of those behind the plan's own undoes; null of an item or a round
    this.maps = []; // items of one map, or rounds of one loop, as [first position, how many, position of the owner, first number]
    this.ofTicket = this.queues.map(() => []);
    this.#forget();
    this.add(document.events);
  }

  get total() {
    return this.queues.length;
  }

  #fresh() {
    return new RunState(this.room, this.planned, this.timeouts);
  }

  /** The ticket that this one undoes, or null. */
  undone(position) {
    return position < this.planned ? null : this.undoes[position - this.planned];
  }

  /** [position of its map or loop, its number] of an item or a round; null of any other ticket. */
  item(position) {
    let low = 0, high = this.maps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.maps[middle][0] <= position) low = middle + 1;
      else high = middle;
    }
    const found = this.maps[low - 1];
    return found && position < found[0] + found[1] ? [found[2], position - found[0] + found[3]] : null;
  }

  #grow(positions, timeout) {
    for (const position of positions) {
      this.undoes.push(position);
      this.queues.push(this.queues[position]);
      this.timeouts.push(timeout);
      this.ofTicket.push([]);
    }
    this.#forget(); // they had no room in it
  }

  /** Items of a map, or a round of a loop: their queue is that of the owner. `number` is that of the first. */
  #items(owner, count, timeout, number) {
    const last = this.maps[this.maps.length - 1];
    if (last && last[2] === owner) last[1] += count;
    else this.maps.push([this.total, count, owner, number]);
    for (let item = 0; item < count; item++) {
      this.undoes.push(null);
      this.queues.push(this.queues[owner]);
      this.timeouts.push(timeout);
      this.ofTicket.push([]);
    }
    if (this.total > this.room) this.#forget();
  }

  #forget() {
    this.room = 2 * this.total; // so that a loop of many rounds folds them again a few times, and not with each
    this.state = this.#fresh();
    this.kept = []; // the state as it was after so many events, and twice as many, and so on
    this.every = Math.max(MOST_STEPS, Math.ceil(this.total / 8));
  }

  get version() {
    return this.rows.length;
  }

  /** Takes over rows that follow those that are known; others were seen before, or leave a gap and are refused. */
  add(rows) {
    for (const row of rows) {
      if (row[0] <= this.rows.length) continue;
      if (row[0] !== this.rows.length + 1) return false;
      const index = this.rows.push(row) - 1;
      const letter = row[2];
      if (letter === "d" || letter === "c" || letter === "x" || letter === "j")
        each(row[3], (position) => this.ofTicket[position].push(index));
      else if (letter === "P") each(row[4], (position) => this.ofTicket[position].push(index));
      else if ("kaflormhtLCAG".includes(letter)) this.ofTicket[row[3]].push(index);
      else if (letter === "u") this.#grow(row[3], row[5]);
      else if (letter === "b") {
        this.ofTicket[row[3]].push(index);
        this.#items(row[3], row[5], row[7], row[8] ?? 0);
      }
    }
    return true;
  }

  /** The state after event `seq`: from where it was, or from the nearest earlier one that was kept on the way. */
  seek(seq) {
    const near = Math.min(Math.floor(seq / this.every), this.kept.length);
    if (seq < this.state.version || near * this.every > this.state.version)
      this.state = near ? this.kept[near - 1].copy() : this.#fresh();
    while (this.state.version < seq) {
      const index = this.state.version;
      this.state.apply(this.rows[index], index);
      if (index + 1 === (this.kept.length + 1) * this.every) this.kept.push(this.state.copy());
    }
    return this.state;
  }

  /** A text that changes when what the run waits for does. */
  held() {
    let text = "";
    for (let position = 0; position < this.state.total; position++) if (this.state.phase[position] === HELD) text += ` ${position}`;
    return text;
  }

  /** The numbers of the events that say how attempts of one ticket failed, up to event `seq`. */
  failures(position, seq) {
    const rows = this.ofTicket[position].map((index) => this.rows[index]);
    return rows.filter((row) => row[0] <= seq && (row[2] === "a" || row[2] === "f")).map((row) => row[0]);
  }

  /** The attempts of one ticket, as they were after event `seq`. */
  attempts(position, seq) {
    const found = [];
    for (const index of this.ofTicket[position]) {
      if (index >= seq) break;
      const row = this.rows[index];
      const [, at, letter] = row;
      const last = found[found.length - 1];
      if (letter === "j") found.push({ n: 0, released: at, sent: null, ended: at, outcome: "concluida", error: "" });
      else if (letter === "d") found.push({ n: row[4], released: at, sent: null, ended: null, outcome: null, error: "" });
      else if (letter === "b") {
        if (!last) found.push({ n: 1, released: at, sent: at, began: at, ended: null, outcome: null, error: "" });
      } else if (letter === "m" || letter === "L") Object.assign(last, { ended: at, outcome: row[4], error: row[5] });
      else if (!last && letter === "x") found.push({ n: 0, released: at, sent: null, ended: at, outcome: row[4], error: row[5] });
      else if (letter === "h") found.push({ n: 0, released: at, sent: at, ended: null, outcome: null, error: "", held: true });
      else if (letter === "t") Object.assign(last, { ended: at, outcome: row[5], error: row[6] });
      else if (letter === "c") last.sent = at;
      else if (letter === "G") last.began = at;
      else if (letter === "k") Object.assign(last, { ended: at, outcome: "concluida" }, worked(last, at, row[5]));
      else if (letter === "C") Object.assign(last, { ended: at, outcome: row[5] });
      else if (letter === "a") Object.assign(last, { ended: at, outcome: "nova_tentativa", cause: row[5], retry: row[6], error: row[7] }, worked(last, at, row[8]));
      else if (letter === "f") Object.assign(last, { ended: at, outcome: row[5], error: row[6] }, worked(last, at, row[8]));
      else if (letter === "x") {
        // Closed while it waited for another try: that try failed, the ticket was closed later.
        if (last.ended === null) Object.assign(last, { ended: at, outcome: row[4], error: row[5] });
        else found.push({ n: 0, released: at, sent: null, ended: at, outcome: row[4], error: row[5] });
      }
    }
    return found;
  }
}
