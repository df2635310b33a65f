// The journal of a run and what it folds to. The rows are those of dashboard/timeline.py; the rules are those of
// core/state.py, and a test holds the two together.
export const STATUS = ["pendente", "em_execucao", "concluida", "parcial", "erro", "timeout", "cancelada"];
export const WAITING = 0, OWED = 1, RUNNING = 2, BACKOFF = 3, CLOSED = 4;
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
    this.total = planned; // tickets so far: those that undo others come later, behind them
    this.open = planned;
    this.endedAt = null;
    this.approval = null; // asked, given or refused
    this.approver = this.approvalReason = "";
  }

  copy() {
    const copy = Object.assign(new RunState(0, 0, this.timeouts), this);
    for (const name of ["status", "phase", "attempt", "due", "failure"]) copy[name] = this[name].slice();
    copy.gates = new Map(this.gates);
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
          this.due[position] = at + this.timeouts[position];
        });
        this.run = EM_EXECUCAO;
        break;
      case "k":
        this.#close(row[3], CONCLUIDA);
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
      case "x":
        each(row[3], (position) => {
          this.failure[position] = index;
          this.#close(position, CODE[row[4]]);
        });
        break;
      case "g":
        this.gates.set(row[3], Boolean(row[4]));
        break;
      case "p":
        [this.approval, this.approver, this.approvalReason] = row.slice(3);
        break;
      case "u":
        this.total += row[3].length;
        this.open += row[3].length;
        break;
      case "e":
        this.run = CODE[row[3]];
        this.endedAt = at;
        break;
    }
  }

  #close(position, status) {
    this.phase[position] = CLOSED;
    this.status[position] = status;
    this.open -= 1;
    if (this.run === PENDENTE) this.run = EM_EXECUCAO;
  }
}

/** Every row so far, and the state after any of them. */
export class RunStore {
  constructor(document) {
    this.rows = [];
    this.queues = [];
    this.timeouts = [];
    this.start = document.start;
    this.deadline = document.deadline - document.start;
    for (const kind of document.tasks.of) {
      const [queue, , timeout] = document.tasks.kinds[kind];
      this.queues.push(queue);
      this.timeouts.push(timeout);
    }
    this.names = document.tasks.names;
    this.planned = this.queues.length;
    this.undoes = []; // which ticket each of those behind the plan's own undoes
    this.ofTicket = this.queues.map(() => []);
    this.#forget();
    this.add(document.events);
  }

  get total() {
    return this.queues.length;
  }

  #fresh() {
    return new RunState(this.total, this.planned, this.timeouts);
  }

  /** The ticket that this one undoes, or null. */
  undone(position) {
    return position < this.planned ? null : this.undoes[position - this.planned];
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

  #forget() {
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
      if (letter === "d" || letter === "c" || letter === "x")
        each(row[3], (position) => this.ofTicket[position].push(index));
      else if (letter === "k" || letter === "a" || letter === "f" || letter === "l") this.ofTicket[row[3]].push(index);
      else if (letter === "u") this.#grow(row[3], row[5]);
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

  /** The attempts of one ticket, as they were after event `seq`. */
  attempts(position, seq) {
    const found = [];
    for (const index of this.ofTicket[position]) {
      if (index >= seq) break;
      const row = this.rows[index];
      const [, at, letter] = row;
      const last = found[found.length - 1];
      if (letter === "d") found.push({ n: row[4], released: at, sent: null, ended: null, outcome: null, error: "" });
      else if (!last && letter === "x") found.push({ n: 0, released: at, sent: null, ended: at, outcome: row[4], error: row[5] });
      else if (letter === "c") last.sent = at;
      else if (letter === "k") Object.assign(last, { ended: at, outcome: "concluida" });
      else if (letter === "a") Object.assign(last, { ended: at, outcome: "nova_tentativa", cause: row[5], retry: row[6], error: row[7] });
      else if (letter === "f") Object.assign(last, { ended: at, outcome: row[5], error: row[6] });
      else if (letter === "x") {
        // Closed while it waited for another try: that try failed, the ticket was closed later.
        if (last.ended === null) Object.assign(last, { ended: at, outcome: row[4], error: row[5] });
        else found.push({ n: 0, released: at, sent: null, ended: at, outcome: row[4], error: row[5] });
      }
    }
    return found;
  }
}
