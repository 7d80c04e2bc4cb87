// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "halfscope/table/update/update_table.hpp"
