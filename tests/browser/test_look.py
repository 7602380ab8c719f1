from __future__ import annotations
import os, pathlib
def test_shots(operator, server, night):
    out = pathlib.Path("/tmp/shots"); out.mkdir(exist_ok=True)
    page = operator.page
    for name, url in {"overview": "/admin/overview/", "record": f"/admin/records/{night.failed}/", "done": f"/admin/records/{night.completed}/", "failures": "/admin/failures/", "members": "/admin/failures/members/?cause=API_5XX&step=pass1", "records": "/admin/records/", "tables": "/admin/tables/"}.items():
        for scheme in ("light", "dark"):
            for width in (1440, 390):
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=scheme)
                page.goto(server + url)
                page.screenshot(path=out / f"{name}-{width}-{scheme}.png", full_page=True)
                print(name, width, scheme, len(page.content()), page.evaluate("document.documentElement.scrollWidth"))
    print(operator.complaints)
