"""The settings of `make lab`, by what jupyter_server and tornado make of them."""

import logging
from types import SimpleNamespace

from jupyter_server.base.websocket import WebSocketMixin
from stand_ins import REPOSITORY
from tornado.ioloop import IOLoop
from tornado.websocket import WebSocketProtocol13
from traitlets.config import PyFileConfigLoader

CONFIG = PyFileConfigLoader("config.py", str(REPOSITORY / "tools" / "lab")).load_config()


def test_the_address_that_is_printed_leads_to_a_lesson():
    page, lesson = CONFIG.LabApp.default_url.rsplit("/", 1)
    assert page == "/lab/tree" and (REPOSITORY / "notebooks" / lesson).exists()


def test_a_connection_that_answers_is_not_cut_and_tornado_has_nothing_to_warn_of(
    caplog, monkeypatch
):
    connection = WebSocketMixin()
    connection.settings = CONFIG.ServerApp.tornado_settings
    connection.log = logging.getLogger("tornado")
    connection.ws_connection = SimpleNamespace(client_terminated=False)
    connection.ping = connection.close = lambda *data: None
    # a check that is a little late, one interval after the last answer
    late = connection.ping_interval / 1000 + 0.01
    monkeypatch.setattr(IOLoop, "current", lambda: SimpleNamespace(time=lambda: late))
    if connection.ping_interval > 0:
        connection.send_ping()
    numbers = SimpleNamespace(
        ping_interval=connection.ping_interval, ping_timeout=connection.ping_timeout
    )
    assert WebSocketProtocol13.ping_timeout.fget(SimpleNamespace(params=numbers, **vars(numbers)))
    assert not caplog.records
