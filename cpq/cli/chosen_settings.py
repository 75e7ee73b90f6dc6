"""The settings of a command: the environment with the options of the command line; needs no database driver."""

from __future__ import annotations

import logging

from cpq.base import logs, tenant_settings
from cpq.base.settings import Settings, read_settings, strange_variables
from cpq.base.tenant_folders import MAIN_TENANT
from cpq.cli.common_options import Options

log = logging.getLogger("cpq.cli")


def settings_of(options: Options) -> Settings:
    """The settings with the command line options applied; also configures logging."""
    settings = read_settings(
        env_file=options.env_file, home=options.home, database_url=options.database_url, tenant=options.tenant
    )
    options.debug = options.debug or settings.log_level == "DEBUG"
    # A command prints its answer; the informational logs of a server would only clutter it.
    level = "ERROR" if settings.log_level == "ERROR" else "WARNING"
    logs.configure("DEBUG" if options.debug else level, settings.log_format)
    for warning in strange_variables(env_file=options.env_file, home=options.home):
        log.warning(warning)
    return settings


def own_settings_of(options: Options) -> Settings:
    """The same for the tenant of --tenant or CPQ_TENANT, with what its folder has."""
    settings = settings_of(options)
    if settings.tenant == MAIN_TENANT:
        return settings
    return tenant_settings.settings_of(settings, settings.tenant)
