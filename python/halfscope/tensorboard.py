# SPDX-License-Identifier: Apache-2.0
"""The tab Halfscope in TensorBoard: the page of `halfscope report` for each run with gradients.

TensorBoard finds HalfscopePlugin by the entry point of the installed package.
"""

import functools
import os
import re
import threading

from tensorboard import context as request_context
from tensorboard import plugin_util
from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from halfscope import _halfscope
from halfscope._logs import report

_SOURCES = ("halfscope", "histograms")  # TensorBoard's plugins whose data a page can show
_RANK = re.compile(r"(^|/)rank-\d{4,}$")
_MOST_PAGES = 8  # that are kept


class HalfscopePlugin(base_plugin.TBPlugin):
    """The tab. TensorBoard makes it, and calls its routes from several threads."""

    plugin_name = "halfscope"

    def __init__(self, context):
        self._context = context
        self._lock = threading.Lock()
        # `newest` is a part of the cache's key only.
        self._page = functools.lru_cache(_MOST_PAGES)(
            lambda folder, run, newest: report(folder, title=run).html())

    def get_plugin_apps(self):
        return {"/index.js": self._serve_index, "/runs": self._serve_runs, "/page": self._serve_page}

    def is_active(self):
        return bool(self._runs(request_context.RequestContext(), ""))

    def data_plugin_names(self):
        return ()  # is_active() decides: histograms of weights alone make no page

    def frontend_metadata(self):
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="Halfscope")

    def _runs(self, context, experiment):
        """Returns {run: (folder, time of its newest tensor)} for the runs that hold gradients. The
        ranks of a run log are one run."""
        ours, histograms = (
            self._context.data_provider.list_tensors(context, experiment_id=experiment, plugin_name=name)
            for name in _SOURCES)
        found = {}
        for run, tags in sorted([*ours.items(), *histograms.items()], key=lambda item: item[0]):
            if any(map(_halfscope.speaks_of_gradients, tags)):
                name, folder = run, self._folder(run)
                if run in ours and run != _RANK.sub("", run):
                    name, folder = _RANK.sub("", run) or ".", _RANK.sub("", folder)
                newest = max(series.max_wall_time for series in tags.values())
                found[name] = folder, max(newest, found.get(name, (folder, 0))[1])
        return found

    def _folder(self, run):
        multiplexer = self._context.multiplexer  # None with TensorBoard's fast loader
        paths = multiplexer.RunPaths() if multiplexer else {}
        return paths.get(run) or os.path.join(os.path.expanduser(self._context.logdir), run)

    def _runs_of(self, request):
        return self._runs(plugin_util.context(request.environ),
                          plugin_util.experiment_id(request.environ))

    @wrappers.Request.application
    def _serve_index(self, request):
        path = os.path.join(os.path.dirname(__file__), "tensorboard.js")
        with open(path, encoding="utf-8") as file:
            return http_util.Respond(request, file.read(), "text/javascript")

    @wrappers.Request.application
    def _serve_runs(self, request):
        newest = {run: newest for run, (_, newest) in self._runs_of(request).items()}
        return http_util.Respond(request, newest, "application/json")

    @wrappers.Request.application
    def _serve_page(self, request):
        run = request.args.get("run", "")
        folder, newest = self._runs_of(request).get(run, (None, None))
        if folder is None:
            return http_util.Respond(request, f"{run}: no such run with gradients", "text/plain", 404)
        try:
            with self._lock:  # one page at a time: each uses all cores
                page = self._page(folder, run, newest)
        except (ValueError, OSError) as error:
            return http_util.Respond(request, f"{run}: {error}", "text/plain")
        scripts = re.findall(r"'sha256-([^']+)'", page[:page.index("<title>")])
        return http_util.Respond(request, page, "text/html", csp_scripts_sha256s=scripts)
