/** What this package throws itself. The messages read `fence: what happened: what to do`. */

/** The base of all of them. */
export class FenceError extends Error {
  override name = "FenceError";
}

/** The time to wait was over and somebody else still holds the key. Nothing was run. */
export class Held extends FenceError {
  override name = "Held";
}

/** The lease ended before its holder was done. What it wrote late was refused, if it was written with the fence. */
export class LeaseLost extends FenceError {
  override name = "LeaseLost";
}

/** The permit ended before its holder was done. */
export class PermitLost extends FenceError {
  override name = "PermitLost";
}
