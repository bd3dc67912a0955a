// The values of the last minutes: counters of each row, one sample per second.

/** Samples that are kept for each row. */
const SAMPLES_MAX = 300;
/** Rates and percentiles cover this many seconds. */
export const WINDOW_S = 10;
/** Samples of a sparkline. */
export const SPARK_SAMPLES = 60;

const COUNTED = ["requests_total", "sessions_total", "bytes_in", "bytes_out"];

/** The history of one row. */
class Series {
  constructor() {
    this.samples = [];
  }

  add(at, row) {
    const sample = { at, counts: row.latency?.counts ?? null, errors: row.errors ?? {} };
    for (const name of COUNTED) sample[name] = row[name] ?? 0;
    const last = this.samples.at(-1);
    // If counters decrease, they belong to another process.
    if (last && sample.sessions_total < last.sessions_total) this.samples = [];
    if (last && at <= last.at) return;
    this.samples.push(sample);
    if (this.samples.length > SAMPLES_MAX) this.samples.shift();
  }

  /** The newest sample, and the one a window earlier. */
  ends(seconds = WINDOW_S) {
    const last = this.samples.at(-1);
    if (!last) return null;
    const first = this.samples.find((sample) => sample.at >= last.at - seconds * 1000 - 500);
    return first === last ? null : { first, last, seconds: (last.at - first.at) / 1000 };
  }

  /** Growth per second; null before there are two samples. */
  rate(of) {
    const ends = this.ends();
    return ends ? Math.max(0, of(ends.last) - of(ends.first)) / ends.seconds : null;
  }

  /** A percentile of the times in the window, from the growth of the buckets. */
  percentile(share, bounds) {
    const ends = this.ends(3 * WINDOW_S);
    if (!ends?.last.counts || !ends.first.counts) return null;
    return percentile(ends.last.counts.map((count, place) => count - ends.first.counts[place]), share, bounds);
  }

  /** Requests per second between samples. */
  steps(of, count) {
    const from = Math.max(1, this.samples.length - count);
    const steps = [];
    for (let place = from; place < this.samples.length; place += 1) {
      const [before, after] = [this.samples[place - 1], this.samples[place]];
      steps.push(Math.max(0, of(after) - of(before)) / Math.max(0.001, (after.at - before.at) / 1000));
    }
    return steps;
  }
}

/** A percentile of a histogram; times are assumed to be spread evenly within a bucket. */
export function percentile(counts, share, bounds) {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  const wanted = share * all;
  let below = 0;
  for (let place = 0; place < counts.length; place += 1) {
    const count = counts[place];
    if (count > 0 && below + count >= wanted) {
      const low = place === 0 ? 0 : bounds[place - 1];
      if (place >= bounds.length) return low;
      return low + (bounds[place] - low) * Math.min(1, Math.max(0, (wanted - below) / count));
    }
    below += count;
  }
  return null;
}

/** The histories of all rows. They stay when the page is left. */
export class History {
  constructor() {
    this.rows = new Map();
  }

  series(key) {
    let series = this.rows.get(key);
    if (!series) {
      series = new Series();
      this.rows.set(key, series);
    }
    return series;
  }

  /** Adds an answer of /api/now. */
  add(now) {
    const at = now.process.now_ms;
    const seen = new Set();
    const take = (key, row) => {
      seen.add(key);
      this.series(key).add(at, row);
    };
    for (const frontend of now.frontends) take(frontendKey(frontend), frontend);
    for (const backend of now.backends) {
      take(backendKey(backend), backend);
      for (const server of backend.servers) take(serverKey(backend, server), server);
    }
    for (const key of this.rows.keys()) if (!seen.has(key)) this.rows.delete(key);
  }
}

export const frontendKey = (frontend) => `f/${frontend.name}`;
export const backendKey = (backend) => `b/${backend.name}`;
export const serverKey = (backend, server) => `s/${backend.name}/${server.name}`;

/** Requests if the proxy has them, otherwise sessions. */
export const requests = (sample) => sample.requests_total || sample.sessions_total;
