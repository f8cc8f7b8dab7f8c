# SPDX-License-Identifier: Apache-2.0
"""The dispatch queue of a prepared worker: one thread, dispatches in submission order, two in flight."""

from __future__ import annotations

import ctypes
import math
import sys
from _thread import allocate_lock, get_ident
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pypto._lazy import LazyModule
from pypto.runtime import _report

if TYPE_CHECKING:
    import queue
    import threading
else:
    queue = LazyModule("queue")
    threading = LazyModule("threading")

IN_FLIGHT = 2
SOON = 0.2  # seconds after which an interrupted dispatch is taken to be in a callback
GRACE = 0.5  # seconds that an interrupted dispatch gets to end before the caller goes on without it


class DistributedRunHandle:
    """A dispatch that was submitted.

    Attributes
    ----------
    done
        Whether it has ended.
    report
        Its `RunReport` once it has ended; `None` before, or if it failed before it started.
    """

    def __init__(self, platform: str, stop: Callable[[], None] | None = None) -> None:
        self._stop = stop
        self._event = threading.Event()
        self._error: BaseException | None = None
        self._native: Any = None
        self._platform = platform
        self._asked = False
        self._keep: Any = None
        self._lock = allocate_lock()
        self._running_on: int | None = None  # identifier of the thread while the dispatch runs
        self._left = False  # interrupted, but its callback would not end: nobody waits for it at the close

    @property
    def done(self) -> bool:
        """Whether the dispatch has ended."""
        return self._event.is_set()

    @property
    def report(self) -> Any:
        """The report of the dispatch, or `None`."""
        if not self.done or self._native is None:
            return None
        return _report.RunReport(self._native, self._platform)

    def result(self, timeout: float | None = None) -> None:
        """Wait for the end; raise the dispatch's error if it failed.

        Raises
        ------
        TimeoutError
            If it has not ended after `timeout` seconds; it goes on.
        ValueError
            If `timeout` is negative, NaN or infinite.
        """
        if timeout is not None:
            if (
                isinstance(timeout, bool)
                or not isinstance(timeout, (int, float))
                or not math.isfinite(timeout)
                or timeout < 0
            ):
                raise ValueError(f"timeout must be a finite number >= 0 or None, got {timeout!r}")
            if not self._event.wait(timeout):
                raise TimeoutError(f"the dispatch has not ended after {timeout} s; it goes on")
        elif not self._event.is_set():
            self._wait()
        self._asked = True
        if self._native is not None:
            _report.remember(self._native, self._platform)
        if self._error is not None:
            raise self._error

    wait = result

    def _wait(self) -> None:
        """Wait for the end; an interrupt of the waiting thread stops the dispatch and says where it was."""
        try:
            self._event.wait()
        except KeyboardInterrupt:
            if self._stop is not None:
                self._stop()
                self._asked = True
                if not self._event.wait(SOON):
                    with self._lock:
                        if self._running_on is not None:  # perhaps in a callback, which only an exception ends
                            _raise_in(self._running_on, KeyboardInterrupt)
                # A callback in a call that Python cannot interrupt (time.sleep) goes on alone.
                self._left = True
                self._left = not self._event.wait(GRACE)
                if isinstance(self._error, Exception):
                    print(f"{type(self._error).__name__}: {self._error}", file=sys.stderr)
            raise

    def _run(self, work: Callable[[], Any]) -> Any:
        """Run `work` on this thread so that `_wait` of another can interrupt it."""
        with self._lock:
            self._running_on = get_ident()
        try:
            return work()
        finally:
            with self._lock:
                _raise_in(get_ident(), None)  # one that came too late
                self._running_on = None

    def _finish(self, native: Any, error: BaseException | None) -> None:
        self._native = native if error is None else getattr(error, "report", None)
        self._error = error
        self._keep = None
        self._event.set()

    def __repr__(self) -> str:
        state = "running" if not self.done else "failed" if self._error else "done"
        return f"<DistributedRunHandle {state}>"


class DispatchQueue:
    """Runs dispatches on a thread of its own, in order. The thread starts with the first dispatch."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lock = allocate_lock()
        self._execution = allocate_lock()  # held while a dispatch runs, on whatever thread
        self._pending: list[DistributedRunHandle] = []
        self._unasked: list[DistributedRunHandle] = []
        self._thread: threading.Thread | None = None
        self._stopped = False  # under the lock: nothing comes in after what `stop` waits for

    def refuse_inside(self, op: str) -> None:
        """Raise if the caller is a callback of this queue: it would wait for itself."""
        if self._thread is not None and threading.current_thread() is self._thread:
            raise RuntimeError(
                f"DistributedWorker.{op}() called from a callback of the same worker: the dispatch would "
                "wait for itself. Do it after the dispatch has ended."
            )

    def _refuse_stopped(self, op: str) -> None:
        if self._stopped:
            raise RuntimeError(f"DistributedWorker.{op}() called after close()")

    def submit(
        self,
        work: Callable[[], Any],
        keep: Any,
        platform: str,
        stop: Callable[[], None] | None = None,
        op: str = "submit",
    ) -> DistributedRunHandle:
        """Queue `work`; first wait for the oldest dispatch if as many as allowed are in flight."""
        handle = DistributedRunHandle(platform, stop)
        handle._keep = keep
        while True:
            with self._lock:
                self._refuse_stopped(op)
                self._pending = [h for h in self._pending if not h.done]
                if len(self._pending) < IN_FLIGHT:
                    if self._thread is None:
                        self._thread = threading.Thread(
                            target=_serve, args=(self._queue, self._execution), name=self._name, daemon=True
                        )
                        self._thread.start()
                    self._pending.append(handle)
                    self._unasked = [h for h in self._unasked if not (h.done and (h._error is None or h._asked))]
                    self._unasked.append(handle)
                    self._queue.put((work, handle))
                    return handle
                oldest = self._pending[0]
            oldest._wait()

    def run(
        self, work: Callable[[], Any], keep: Any, platform: str, own_thread: bool, stop: Callable[[], None]
    ) -> DistributedRunHandle:
        """Run `work` and wait: on the caller's thread if nothing is in flight and no Python callback is in it."""
        handle = None if own_thread else self._idle_then_hold()
        if handle is None:
            handle = self.submit(work, keep, platform, stop, op="run")
            handle._asked = True
            handle._wait()
            return handle
        try:
            native, error = work(), None
        except BaseException as failure:
            native, error = None, failure
        finally:
            self._execution.release()
        handle._platform = platform
        handle._finish(native, error)
        return handle

    def _idle_then_hold(self) -> DistributedRunHandle | None:
        """If nothing is in flight, hold the execution and return the handle that counts as in flight."""
        with self._lock:
            self._refuse_stopped("run")
            self._pending = [h for h in self._pending if not h._event.is_set()]
            if self._pending:
                return None
            self._execution.acquire()
            handle = DistributedRunHandle("")
            handle._asked = True
            self._pending.append(handle)
            return handle

    def drain(self) -> None:
        """Wait until nothing is in flight; called from a callback it does not wait."""
        if threading.current_thread() is self._thread:
            return
        for handle in list(self._pending):
            handle._wait()

    def stop(self) -> BaseException | None:
        """Wait for everything, end the thread; return the first error that nobody asked about.

        What an interrupt could not end is not waited for: see `left`.
        """
        with self._lock:
            self._stopped = True
        for handle in list(self._pending):
            if not handle._left:
                handle._wait()
        if self._thread is not None:
            self._queue.put(None)
            if not self.left():
                self._thread.join()
            self._thread = None
        for handle in self._unasked:
            if handle._error is not None and not handle._asked:
                return handle._error
        return None

    def left(self) -> bool:
        """Whether the callback of an interrupted dispatch still runs, with the memory that it was given."""
        return any(handle._left and not handle.done for handle in self._pending)

    def abandon(self) -> None:
        """Let the thread end after what is queued, without waiting."""
        if self._thread is not None:
            self._queue.put(None)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Let `thread` raise `error` at its next bytecode; `None` takes back what it has not raised yet."""
    value = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), value)


def _serve(work_queue: Any, execution: Any) -> None:
    while True:
        item = work_queue.get()
        if item is None:
            return
        work, handle = item
        with execution:
            try:
                native, error = handle._run(work), None
            except BaseException as failure:
                native, error = None, failure
        handle._finish(native, error)
        del item, work, handle, native, error
